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
    """The machine, and what the limits leave to each user.

    Attributes:
        level: processors free now, and how many tasks run, [2].
        ends: when each running task is expected to end, ascending, none before now, in the first of [R].
        held: processors of each of those, [R].
        task: each of those, [R].
        room_tasks: how many more tasks each user may start, [U + 1]; the last is for unknown users.
        room_processors: how many more processors each user may take, [U + 1].
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


def decide(
    mechanism: int, now: float, head: Head, order: Indices, fill: Indices, tasks: Tasks, pool: Pool, chosen: Indices
) -> tuple[int, Head]:
    """Choose what starts now.

    The caller puts it on the machine: of ``pool`` only what the limits leave is changed here.

    Args:
        mechanism: index into ``MECHANISMS``; not conservative.
        now: seconds.
        head: of the last decision: it is kept until it starts, except by ``easy``.
        order: tasks, the most urgent first; those that no longer wait are skipped.
        fill: tasks in the order in which they may overtake.
        tasks: ``waiting`` is cleared for those that start.
        pool: the machine before they start.
        chosen: receives the tasks that start, in order, [at least as many as wait].

    Returns:
        How many tasks start, and what the others wait for.
    """
    free, count, blocked = pool.level[0], 0, -1
    if head.task >= 0 and mechanism != EASY:
        if tasks.processors[head.task] <= free:
            chosen[0] = head.task
            _, count, free = in_line(chosen[:1], free, 0, tasks, pool, chosen)
        else:
            blocked = head.task
    if blocked < 0:
        blocked, count, free = in_line(order, free, count, tasks, pool, chosen)
        until, spare = np.inf, 0
        if blocked >= 0:
            started = by_end(tasks, chosen[:count])
            until, spare = earliest(now, free, tasks.processors[blocked], tasks, pool, started)
        head = Head(blocked, until, spare)
    if blocked >= 0 and mechanism != NONE:
        count = overtake(mechanism, now, head, fill, free, count, tasks, pool, chosen)
    return count, head


def in_line(order: Indices, free: int, count: int, tasks: Tasks, pool: Pool, chosen: Indices) -> tuple[int, int, int]:
    """Choose tasks in their order up to the first that does not fit; users at their limit are passed over.

    Returns:
        The first that does not fit, −1 if all do; how many are chosen; processors still free.
    """
    waiting, processors, user = tasks.waiting, tasks.processors, tasks.user
    room_tasks, room_processors = pool.room_tasks, pool.room_processors
    for task in order:
        need, owner = processors[task], user[task]
        if not waiting[task] or room_tasks[owner] < 1 or room_processors[owner] < need:
            continue
        if need > free:
            return task, count, free
        waiting[task] = False
        room_tasks[owner] -= 1
        room_processors[owner] -= need
        free -= need
        chosen[count] = task
        count += 1
    return -1, count, free


def earliest(now: float, free: int, need: int, tasks: Tasks, pool: Pool, started: Indices) -> tuple[float, int]:
    """When ``need`` processors are expected to be free, and how many more are free then.

    Args:
        now: seconds.
        free: processors, less than ``need``.
        need: processors.
        tasks: for those that start now.
        pool: the machine before they start.
        started: tasks that start now, those that end first before the others, [S].

    Returns:
        Seconds, at least ``now``, and processors.
    """
    ends, held, expected, processors = pool.ends, pool.held, tasks.expected, tasks.processors
    running, until, i, j = pool.level[1], now, 0, 0
    while i < running or j < len(started):
        old = ends[i] if i < running else np.inf
        new = now + expected[started[j]] if j < len(started) else np.inf
        if free >= need and min(old, new) > until:
            return until, free - need
        until = max(until, min(old, new))
        if old <= new:
            free += held[i]
            i += 1
        else:
            free += processors[started[j]]
            j += 1
    return until, free - need


def by_end(tasks: Tasks, started: Indices) -> Indices:
    """Tasks that start together, the shortest first, [S]."""
    if len(started) < 2:
        return started
    return started[np.argsort(tasks.expected[started])]


def overtake(
    mechanism: int,
    now: float,
    head: Head,
    fill: Indices,
    free: int,
    count: int,
    tasks: Tasks,
    pool: Pool,
    chosen: Indices,
) -> int:
    """Choose those that may overtake ``head``; how many tasks are chosen then."""
    waiting, processors, user, expected = tasks.waiting, tasks.processors, tasks.user, tasks.expected
    room_tasks, room_processors = pool.room_tasks, pool.room_processors
    first, window, spare = head.task, head.until - now, head.spare if mechanism == EASY else 0
    for task in fill:
        need = processors[task]
        if need > free or task == first or not waiting[task]:
            continue
        inside = expected[task] < window or (mechanism == EASY and expected[task] == window)
        owner = user[task]
        if not (inside or need <= spare) or room_tasks[owner] < 1 or room_processors[owner] < need:
            continue
        waiting[task] = False
        room_tasks[owner] -= 1
        room_processors[owner] -= need
        free -= need
        spare -= 0 if inside else need
        chosen[count] = task
        count += 1
        if free == 0:
            return count  # compiled code is many times slower where a loop breaks
    return count
