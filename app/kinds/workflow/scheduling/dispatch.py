"""Dispatch of a queue on one machine, with backfilling and reservations; also compiled by Numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Seconds

NONE, RLS, EASY, CONSERVATIVE, UNCOMMITTED = range(5)
MECHANISMS = ("none", "rls", "easy", "conservative", "uncommitted")
"""``uncommitted``: as ``none``, but the first waiting task is chosen anew at each decision."""

Indices = NDArray[np.int64]
UNLIMITED = np.iinfo(np.int64).max


class Tasks(NamedTuple):
    """N tasks at a decision, [N] each.

    Attributes:
        submit: submission, seconds after the trace's origin.
        expected: seconds that a task is planned with.
        processors: number of processors needed.
        user: index of the user, −1: unknown.
        waiting: whether it is submitted and not started; cleared on start.
    """

    submit: Seconds
    expected: Seconds
    processors: Indices
    user: Indices
    waiting: NDArray[np.bool_]


class Pool(NamedTuple):
    """The machine with up to R running tasks, and the remaining limits of U users.

    Attributes:
        level: free processors, and number of running tasks, [2].
        ends: expected end of running tasks in seconds, ascending, none before now, in the first entries of [R].
        running_processors: processors of each running task, [R].
        task: row of each running task, [R].
        room_tasks: further tasks that each user may start, [U + 1]; the last is for unknown users.
        room_processors: further processors that each user may take, [U + 1].
    """

    level: Indices
    ends: Seconds
    running_processors: Indices
    task: Indices
    room_tasks: Indices
    room_processors: Indices


class Head(NamedTuple):
    """The first waiting task, which others must not delay.

    Attributes:
        task: row of the task; −1: none.
        until: earliest start of the task in seconds, if running tasks end as expected.
        spare: processors that the task leaves free then.
    """

    task: int
    until: float
    spare: int


def decide(
    mechanism: int, now: float, head: Head, order: Indices, fill: Indices, tasks: Tasks, pool: Pool, chosen: Indices
) -> tuple[int, Head]:
    """Choose the tasks that start now. The caller updates the machine: of ``pool`` only users' limits are changed here.

    Args:
        mechanism: backfilling mechanism, an index into ``MECHANISMS``, not conservative.
        now: seconds on the clock of ``tasks.submit``.
        head: first waiting task of the last decision, kept until it starts, except under ``easy`` and ``uncommitted``.
        order: rows, most urgent first; tasks that no longer wait are skipped.
        fill: rows in the backfilling order.
        tasks: tasks of the queue; ``waiting`` is cleared for tasks that start.
        pool: the machine before.
        chosen: receives the rows that start, in order; at least as long as the number waiting.

    Returns:
        Number of tasks that start, and the first waiting one.
    """
    free, count, blocked = pool.level[0], 0, -1
    if head.task >= 0 and mechanism not in (EASY, UNCOMMITTED):
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
    if blocked >= 0 and mechanism in (RLS, EASY):
        count = overtake(mechanism, now, head, fill, free, count, tasks, pool, chosen)
    return count, head


def in_line(order: Indices, free: int, count: int, tasks: Tasks, pool: Pool, chosen: Indices) -> tuple[int, int, int]:
    """Choose tasks in ``order`` up to the first that doesn't fit; users at their limit are skipped. ``free`` is the
    number of free processors, ``count`` that of the tasks in ``chosen`` before. Rows are added to ``chosen``, and
    ``tasks`` and ``pool`` updated, in place.

    Returns:
        First row that doesn't fit (−1: all fit), number of tasks chosen in all, and free processors left.
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
    """Return the time in seconds, at least ``now``, when ``need`` processors should be free, and how many more are then
    free.

    Args:
        now: seconds.
        free: processors free now, fewer than ``need``.
        need: number of processors.
        tasks: tasks of the queue.
        pool: the machine before ``started``.
        started: rows of S tasks that start now, by expected end, [S].
    """
    ends, size, expected, processors = (pool.ends, pool.running_processors, tasks.expected, tasks.processors)
    running, until, i, j = pool.level[1], now, 0, 0
    while i < running or j < len(started):
        old = ends[i] if i < running else np.inf
        new = now + expected[started[j]] if j < len(started) else np.inf
        if free >= need and min(old, new) > until:
            return until, free - need
        until = max(until, min(old, new))
        if old <= new:
            free += size[i]
            i += 1
        else:
            free += processors[started[j]]
            j += 1
    return until, free - need


def by_end(tasks: Tasks, started: Indices) -> Indices:
    """Return the rows ``started`` [S] of tasks that start together, shortest expected run time first, [S]."""
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
    """Choose tasks that may overtake ``head`` without delaying it, in the order of ``fill`` (rows); return the number
    chosen in all. ``free``: free processors; ``count``: number in ``chosen`` before; ``now``: seconds. ``chosen``,
    ``tasks`` and the users' limits in ``pool`` are updated."""
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


# Conservative backfilling: every waiting task has a reservation that others don't delay.
#
# A task gets the earliest start at which it disturbs none. When a task ends, each in order may move to an earlier
# start, never to a later one (Mu'alem and Feitelson 2001). If a task overruns its expected time, all reservations are
# made anew. Users at their limit get none; and at most ``MOST`` tasks hold one at a time.
#
# Compiled by Numba too. A profile holds the free processors between successive times.


LEAST = 1.0  # seconds: a reservation of no length would hold nothing, and be overtaken for ever
MOST = 100  # most reservations at a time: the time to find one grows with their number


class Profile(NamedTuple):
    """Free processors over time, in the first ``size[0]`` of P entries; the last holds from then on.

    Attributes:
        times: seconds, ascending from now, [P].
        free: processors free from each time on, [P]; negative if overcommitted.
        size: number of entries in use, [1].
    """

    times: Seconds
    free: Indices
    size: NDArray[np.int64]


def empty_profile(tasks: int, running: int) -> Profile:
    """Return a profile with room for the reservations of ``tasks`` tasks beside ``running`` tasks (both numbers)."""
    points = 3 * tasks + running + 4  # reservations have a start and an end, and may get another end
    return Profile(np.zeros(points), np.zeros(points, np.int64), np.zeros(1, np.int64))


def begin(now: float, pool: Pool, profile: Profile) -> None:
    """Reset ``profile`` in place to the running tasks only, from ``now`` (seconds) on."""
    times, free, size = profile.times, profile.free, profile.size
    times[0], free[0], last = now, pool.level[0], 0
    for i in range(pool.level[1]):
        if pool.ends[i] > times[last]:
            last += 1
            times[last], free[last] = pool.ends[i], free[last - 1]
        free[last] += pool.running_processors[i]
    size[0] = last + 1


def point(profile: Profile, at: float) -> int:
    """Return the index of time ``at`` (seconds) in the profile; a missing entry is inserted."""
    times, free, count = profile.times, profile.free, profile.size[0]
    i = int(np.searchsorted(times[:count], at))
    if i == count or times[i] != at:
        for k in range(count, i, -1):
            times[k], free[k] = times[k - 1], free[k - 1]
        times[i], free[i] = at, free[i - 1]
        profile.size[0] = count + 1
    return i


def hold(profile: Profile, begun: float, end: float, processors: int) -> None:
    """Take processors in the profile from ``begun`` to ``end`` (seconds); a negative number returns them."""
    first, free = point(profile, begun), profile.free
    for i in range(first, point(profile, end)):
        free[i] -= processors


def place(profile: Profile, length: float, processors: int) -> float:
    """Return the earliest start in seconds at which ``processors`` are free for ``length`` seconds."""
    times, free, count, first = profile.times, profile.free, profile.size[0], 0
    for i in range(count):
        if free[i] < processors:
            first = i + 1
        elif i + 1 < count and times[i + 1] - times[first] >= length:
            return times[first]
    return times[min(first, count - 1)]


def keep(order: Indices, tasks: Tasks, profile: Profile, reserved: Seconds) -> bool:
    """Add the reservations of N tasks to a profile of running tasks; return False if they can't be kept. ``reserved``:
    reserved starts in seconds, infinite: none, [N]; ``order``: rows of the tasks."""
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
    """Choose the tasks that start now, and reserve a start for the others; return the number of tasks that start.

    Args:
        now: seconds.
        order: rows of waiting tasks, the first to move forward first.
        anew: whether reservations may move; otherwise only new tasks get one, and only due tasks start.
        tasks: N tasks; ``waiting`` is cleared for tasks that start.
        pool: the machine before; running tasks are expected to end after ``now``.
        reserved: reserved starts in seconds, infinite: none, [N]; updated.
        profile: scratch space.
        chosen: receives the rows that start, in order; at least as long as the number waiting.
    """
    begin(now, pool, profile)
    if not keep(order, tasks, profile, reserved):
        reserved[order] = np.inf
        begin(now, pool, profile)
    count, mask, skipped = 0, np.isfinite(reserved[order]).sum(), 0
    for again in (False, True):  # second pass: tasks beyond ``MOST``, if reservations were released
        if again and (skipped == 0 or mask >= MOST):
            break
        for task in order:
            before, need, owner = reserved[task], tasks.processors[task], tasks.user[task]
            full = mask >= MOST and before == np.inf
            skipped += full
            if full or not tasks.waiting[task] or (again and before < np.inf):
                continue
            length = max(tasks.expected[task], LEAST)
            barred = pool.room_tasks[owner] < 1 or pool.room_processors[owner] < need
            if not (anew or barred or before == now or before == np.inf):
                continue
            if before < np.inf:
                mask -= 1
                hold(profile, before, before + length, -need)
            begun = np.inf if barred else place(profile, length, need)
            reserved[task] = begun
            if begun < np.inf:
                mask += 1
                hold(profile, begun, begun + length, need)
            if begun == now:
                tasks.waiting[task] = False
                pool.room_tasks[owner] -= 1
                pool.room_processors[owner] -= need
                chosen[count] = task
                count, mask = count + 1, mask - 1
    return count
