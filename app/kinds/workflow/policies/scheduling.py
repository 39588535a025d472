"""Tasks are started on one machine by a policy, one pick after the other."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.policies.base import Pick, Picker, View
from app.kinds.workflow.scheduling.dispatch import EASY, Head, Indices, Pool, Tasks, decide
from app.kinds.workflow.scheduling.observation import Waiting, survey, visible
from app.kinds.workflow.trace import Seconds

PICKS = 64  # networks are asked anew after each start so often; the rest waits for the next report


@dataclass
class Started:
    """What a decision starts.

    Attributes:
        tasks: in the order in which they start.
        head: what the others wait for.
        picks: what the policy said, in order.
    """

    tasks: list[int]
    head: Head
    picks: list[Pick] = field(default_factory=list)


def view_of(
    mechanism: int, now: float, queue: Indices, tasks: Tasks, pool: Pool, machine: int, recent: Seconds
) -> tuple[Indices, View]:
    """The candidates [Q] among waiting tasks in order of submission, and what is seen of them.

    ``recent`` are run times of each user's last two tasks, seconds, not a number where unknown, [U + 1, 2].
    """
    task = queue[visible(tasks.expected[queue], tasks.processors[queue])]
    submit, expected, processors = tasks.submit[task], tasks.expected[task], tasks.processors[task]
    running = int(pool.level[1])
    waiting = Waiting(now - submit, expected, processors, recent[tasks.user[task]].mean(axis=1))
    ends, held = pool.ends[:running], pool.held[:running]
    seen = survey(mechanism, now, waiting, machine, int(pool.level[0]), ends, held)
    return task, View(now, submit, expected, processors, seen)


def schedule(
    policy: Picker,
    mechanism: int,
    now: float,
    head: Head,
    queue: Indices,
    fill: Indices,
    tasks: Tasks,
    pool: Pool,
    machine: int,
    recent: Seconds,
) -> Started:
    """Start what may start now.

    Args:
        policy: what picks.
        mechanism: index into ``MECHANISMS``; not conservative.
        now: seconds.
        head: of the last decision.
        queue: waiting tasks in order of submission, [Q].
        fill: the same in the order in which they may overtake.
        tasks: their ``waiting`` is cleared for those that start.
        pool: the machine; those that start are put on it.
        machine: its processors.
        recent: run times of each user's last two tasks, seconds, [U + 1, 2].
    """
    found = Started([], Head(-1, np.inf, 0) if mechanism == EASY else head)
    if found.head.task >= 0:
        found.head = _turn(mechanism, now, found, queue[:0], fill, tasks, pool)
    while found.head.task < 0 and len(found.picks) < PICKS:
        queue = queue[tasks.waiting[queue]]
        if not len(queue) or (mechanism == EASY and tasks.processors[queue].min() > pool.level[0]):
            break
        task, view = view_of(mechanism, now, queue, tasks, pool, machine, recent)
        picked = policy.pick(view)
        found.picks.append(picked)
        before = len(found.tasks)
        if picked.candidate < 0:
            break
        found.head = _turn(mechanism, now, found, task[picked.candidate : picked.candidate + 1], fill, tasks, pool)
        if found.head.task < 0 and len(found.tasks) == before:
            break
    return found


def _turn(mechanism: int, now: float, found: Started, order: Indices, fill: Indices, tasks: Tasks, pool: Pool) -> Head:
    """Let the mechanism decide for one pick, and put what starts on the machine."""
    chosen = np.empty(max(len(fill), 1), np.int64)
    count, head = decide(mechanism, now, found.head, order, fill, tasks, pool, chosen)
    for task in chosen[:count]:
        _enter(now + tasks.expected[task], int(task), tasks, pool)
        found.tasks.append(int(task))
    return head


def _enter(end: float, task: int, tasks: Tasks, pool: Pool) -> None:
    running = int(pool.level[1])
    at = int(np.searchsorted(pool.ends[:running], end, side="right"))
    columns: tuple[tuple[NDArray[np.generic], float], ...] = (
        (pool.ends, end),
        (pool.held, int(tasks.processors[task])),
        (pool.task, task),
    )
    for column, value in columns:
        column[at + 1 : running + 1] = column[at:running].copy()
        column[at] = value
    pool.level[0] -= tasks.processors[task]
    pool.level[1] += 1
