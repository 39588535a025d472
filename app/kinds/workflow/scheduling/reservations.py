"""Conservative backfilling: every waiting task holds a reservation, and none is ever put off by another.

A task gets the earliest start at which it disturbs nobody. Whenever a task has ended, each in turn may move to an
earlier place, the first of the order before the others; it never moves to a later one (Mu'alem and Feitelson 2001). But
where a task runs longer than expected, reservations cannot be kept: all are made anew. Users at their limit hold
none, nor do more than ``MOST`` tasks at a time: others wait until one of those starts.

Written in what Numba compiles too. A profile says how many processors are free from each of some times to the next.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.scheduling.dispatch import Indices, Pool, Tasks
from app.kinds.workflow.trace import Seconds

LEAST = 1.0  # seconds: a reservation of no length would hold nothing, and be overtaken for ever
MOST = 100  # reservations at a time: each that is looked for takes as long as there are reservations


class Profile(NamedTuple):
    """Free processors over time, in the first ``size[0]`` of [P]; the last holds for ever.

    Attributes:
        times: seconds, ascending, the first is now, [P].
        free: processors from then on, [P]; negative where more is promised than there is.
        size: [1].
    """

    times: Seconds
    free: Indices
    size: NDArray[np.int64]


def empty_profile(tasks: int, running: int) -> Profile:
    """Room for the reservations of so many tasks beside so many that run."""
    points = 3 * tasks + running + 4  # what is kept has a start and an end, and each may get another end
    return Profile(np.zeros(points), np.zeros(points, np.int64), np.zeros(1, np.int64))


def begin(now: float, pool: Pool, profile: Profile) -> None:
    """The profile of what runs alone."""
    times, free, size = profile.times, profile.free, profile.size
    times[0], free[0], last = now, pool.level[0], 0
    for i in range(pool.level[1]):
        if pool.ends[i] > times[last]:
            last += 1
            times[last], free[last] = pool.ends[i], free[last - 1]
        free[last] += pool.held[i]
    size[0] = last + 1


def point(profile: Profile, at: float) -> int:
    """Index of a time, which is added if need be."""
    times, free, count = profile.times, profile.free, profile.size[0]
    i = int(np.searchsorted(times[:count], at))
    if i == count or times[i] != at:
        for k in range(count, i, -1):
            times[k], free[k] = times[k - 1], free[k - 1]
        times[i], free[i] = at, free[i - 1]
        profile.size[0] = count + 1
    return i


def hold(profile: Profile, begun: float, end: float, processors: int) -> None:
    """Take processors for a time; give back a negative number."""
    first, free = point(profile, begun), profile.free
    for i in range(first, point(profile, end)):
        free[i] -= processors


def place(profile: Profile, length: float, processors: int) -> float:
    """The earliest start at which so many processors are free for so long, seconds."""
    times, free, count, first = profile.times, profile.free, profile.size[0], 0
    for i in range(count):
        if free[i] < processors:
            first = i + 1
        elif i + 1 < count and times[i + 1] - times[first] >= length:
            return times[first]
    return times[min(first, count - 1)]


def keep(order: Indices, tasks: Tasks, profile: Profile, reserved: Seconds) -> bool:
    """Put the reservations into the profile of what runs; False where they cannot be kept."""
    times, free = profile.times, profile.free
    late = False
    for task in order:
        begun = reserved[task]
        if tasks.waiting[task] and begun < np.inf:
            late = late or begun < times[0]
            length = max(tasks.expected[task], LEAST)
            hold(profile, max(begun, times[0]), max(begun, times[0]) + length, tasks.processors[task])
    return not late and free[: profile.size[0]].min() >= 0


def reserve(
    now: float,
    order: Indices,
    anew: bool,
    tasks: Tasks,
    pool: Pool,
    reserved: Seconds,
    profile: Profile,
    chosen: Indices,
) -> int:
    """Choose what starts now, and reserve a start for all others.

    Args:
        now: seconds.
        order: waiting tasks, the first to move forward first.
        anew: whether reservations may move; otherwise only new tasks get one, and only those that are due start.
        tasks: ``waiting`` is cleared for those that start.
        pool: the machine before they start; all that runs is expected to end after ``now``.
        reserved: start of each task, seconds, infinite for none, [N]; changed.
        profile: scratch.
        chosen: receives the tasks that start, in order, [at least as many as wait].

    Returns:
        How many tasks start.
    """
    begin(now, pool, profile)
    if not keep(order, tasks, profile, reserved):
        reserved[order] = np.inf
        begin(now, pool, profile)
    count, kept, skipped = 0, np.isfinite(reserved[order]).sum(), 0
    for again in (False, True):  # those that found no room among ``MOST`` come after those that have left it
        if again and (skipped == 0 or kept >= MOST):
            break
        for task in order:
            before, need, owner = reserved[task], tasks.processors[task], tasks.user[task]
            full = kept >= MOST and before == np.inf
            skipped += full
            if full or not tasks.waiting[task] or (again and before < np.inf):
                continue
            length = max(tasks.expected[task], LEAST)
            barred = pool.room_tasks[owner] < 1 or pool.room_processors[owner] < need
            if not (anew or barred or before == now or before == np.inf):
                continue
            if before < np.inf:
                kept -= 1
                hold(profile, before, before + length, -need)
            begun = np.inf if barred else place(profile, length, need)
            reserved[task] = begun
            if begun < np.inf:
                kept += 1
                hold(profile, begun, begun + length, need)
            if begun == now:
                tasks.waiting[task] = False
                pool.room_tasks[owner] -= 1
                pool.room_processors[owner] -= need
                chosen[count] = task
                count, kept = count + 1, kept - 1
    return count
