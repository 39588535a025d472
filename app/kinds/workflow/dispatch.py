"""From an order of waiting tasks to starts on one pool of processors: the mechanisms.

``none``: the first task of the order that does not fit is committed, and all wait until it fits. ``rls``: the same,
and others may overtake it that fit now and end, by their estimate, before the earliest start that it had when it was
committed (Zhang et al. 2020, RLScheduler). ``easy``: the first that does not fit is chosen at each decision; others
overtake it if they end, by their estimate, no later than its earliest start, or need only processors that it leaves
spare (Lifka 1995).

Written in what Numba compiles too: simulators and the service decide by the same code. Tasks are indices into arrays of
[N]; a decision takes about half a microsecond per waiting task in plain Python.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Seconds

NONE, RLS, EASY, CONSERVATIVE = range(4)
MECHANISMS = ("none", "rls", "easy", "conservative")

Indices = NDArray[np.int64]
UNLIMITED = np.iinfo(np.int64).max


class Tasks(NamedTuple):
    """What a decision knows of tasks, [N] each.

    Attributes:
        submit: seconds after the trace's origin.
        expected: seconds that a task is planned with.
        processors: how many it needs.
        user: index of its user, −1 where unknown.
        waiting: whether it is submitted and not started; starting a task clears it.
    """

    submit: Seconds
    expected: Seconds
    processors: Indices
    user: Indices
    waiting: NDArray[np.bool_]


class Pool(NamedTuple):
    """The machine, changed in place as tasks start.

    Attributes:
        level: processors free now, and how many tasks run, [2].
        ends: when each running task is expected to end, ascending, in the first of [R].
        held: processors of each of those, [R].
        task: each of those, [R].
        room_tasks: how many more tasks each user may run, [U + 1]; the last is for unknown users.
        room_processors: how many more processors each user may hold, [U + 1].
    """

    level: Indices
    ends: Seconds
    held: Indices
    task: Indices
    room_tasks: Indices
    room_processors: Indices


class Head(NamedTuple):
    """The task that all wait for, and what may overtake it.

    Attributes:
        task: −1 where none must wait.
        until: seconds; its earliest start if running tasks end as expected.
        spare: processors that it leaves free then.
    """

    task: int
    until: float
    spare: int


def empty_pool(processors: int, running: int, room_tasks: Indices, room_processors: Indices) -> Pool:
    """An idle machine on which at most ``running`` tasks run at a time."""
    ends, held, task = np.zeros(running), np.zeros(running, np.int64), np.zeros(running, np.int64)
    return Pool(np.array([processors, 0]), ends, held, task, room_tasks, room_processors)


def allowed(tasks: Tasks, pool: Pool, task: int) -> bool:
    """Whether the limits of its user leave room for ``task``."""
    user = tasks.user[task]
    return pool.room_tasks[user] > 0 and pool.room_processors[user] >= tasks.processors[task]


def start(now: float, tasks: Tasks, pool: Pool, task: int) -> None:
    """Put ``task`` on the machine; whoever calls has seen that it fits."""
    need, user, count = tasks.processors[task], tasks.user[task], pool.level[1]
    end = now + tasks.expected[task]
    at = np.searchsorted(pool.ends[:count], end, side="right")
    pool.ends[at + 1 : count + 1] = pool.ends[at:count]
    pool.held[at + 1 : count + 1] = pool.held[at:count]
    pool.task[at + 1 : count + 1] = pool.task[at:count]
    pool.ends[at], pool.held[at], pool.task[at] = end, need, task
    pool.level[0] -= need
    pool.level[1] = count + 1
    pool.room_tasks[user] -= 1
    pool.room_processors[user] -= need
    tasks.waiting[task] = False


def earliest(now: float, pool: Pool, need: int) -> tuple[float, int]:
    """When ``need`` processors are expected to be free, and how many more are free then.

    Returns:
        Seconds, at least ``now``, and processors; the end of all that runs where there are never enough.
    """
    free, until = pool.level[0], now
    for i in range(pool.level[1]):
        if free >= need and pool.ends[i] > until:
            break
        free += pool.held[i]
        until = max(until, pool.ends[i])
    return until, free - need


def decide(
    mechanism: int, now: float, head: Head, order: Indices, fill: Indices, tasks: Tasks, pool: Pool, chosen: Indices
) -> tuple[int, Head]:
    """Start what may start now.

    Args:
        mechanism: index into ``MECHANISMS``; not conservative.
        now: seconds.
        head: of the last decision: it is kept until it starts, except by ``easy``.
        order: tasks, the most urgent first; those that no longer wait are skipped.
        fill: tasks in the order in which they may overtake.
        tasks: their ``waiting`` is changed.
        pool: changed by those that start.
        chosen: receives the tasks that start, in order, [at least as many as wait].

    Returns:
        How many tasks start, and what the others wait for.
    """
    count = 0
    committed = head.task >= 0 and mechanism != EASY
    if committed and tasks.processors[head.task] <= pool.level[0]:
        start(now, tasks, pool, head.task)
        chosen[0] = head.task
        count, committed = 1, False
    if not committed:
        count, head = in_line(now, order, tasks, pool, chosen, count)
    if head.task >= 0 and mechanism != NONE:
        count = overtake(mechanism, now, head, fill, tasks, pool, chosen, count)
    return count, head


def in_line(now: float, order: Indices, tasks: Tasks, pool: Pool, chosen: Indices, count: int) -> tuple[int, Head]:
    """Start tasks in their order up to the first that does not fit; users at their limit are passed over."""
    for task in order:
        if not tasks.waiting[task] or not allowed(tasks, pool, task):
            continue
        if tasks.processors[task] > pool.level[0]:
            until, spare = earliest(now, pool, tasks.processors[task])
            return count, Head(task, until, spare)
        start(now, tasks, pool, task)
        chosen[count] = task
        count += 1
    return count, Head(-1, np.inf, 0)


def overtake(
    mechanism: int, now: float, head: Head, fill: Indices, tasks: Tasks, pool: Pool, chosen: Indices, count: int
) -> int:
    """Start those that may overtake ``head``; how many tasks are chosen then."""
    window, spare = head.until - now, head.spare if mechanism == EASY else 0
    for task in fill:
        need = tasks.processors[task]
        if pool.level[0] == 0:
            break
        if need > pool.level[0] or task == head.task or not tasks.waiting[task]:
            continue
        length = tasks.expected[task]
        inside = length <= window if mechanism == EASY else length < window
        if not (inside or need <= spare) or not allowed(tasks, pool, task):
            continue
        start(now, tasks, pool, task)
        chosen[count] = task
        count += 1
        spare = spare if inside else spare - need
    return count
