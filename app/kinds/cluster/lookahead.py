"""Decisions that simulate what follows: candidates compared by a short simulation, and jobs that converge early."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.placement import Rule, Situation, Wanted
from app.kinds.cluster.strategies import LATE, LEAST, STEADY, Constants, completing, grid, urgency

# What becomes of a situation's jobs until all have ended, for many first allocations at once; nobody else comes.
#
# C of them, J jobs, K numbers of GPUs for each.


Booleans = NDArray[np.bool_]
UNENDING = 1e9
"""Seconds of jobs that nothing can run."""
ROUNDED = 1e-6


class Ahead(NamedTuple):
    """What is played.

    Attributes:
        sizes: numbers of GPUs, not descending, from 0, [J, K].
        seconds: until each job is finished on them; infinite where it can't have so many, [J, K].
        worth: of a second of each one's completion time, [J].
        level: of urgency; it stays as it is, [J].
        gpus, restarting: GPUs that each has, and seconds until it trains on them, [J].
        total: GPUs that there are.
        restart: seconds that a change costs.
        interval: seconds after which GPUs are given anew.
        constants: of the rule that goes on.
    """

    sizes: Integers
    seconds: Floats
    worth: Floats
    level: Integers
    gpus: Integers
    restarting: Floats
    total: int
    restart: float
    interval: float
    constants: Constants


class _Shares(NamedTuple):
    """By the number of jobs that are left, on an equal share: what speeds count over it, and seconds on it.

    [J + 1, J, K] and [J + 1, J].
    """

    speeds: Floats
    seconds: Floats


def costs(ahead: Ahead, first: Integers) -> Floats:
    """Weighted sums of the seconds until jobs have ended, [C], where they have ``first`` [C, J] until one has."""
    gpus, left, cost, shares = first, np.ones(first.shape), np.zeros(len(first)), _shares(ahead)
    there, lost = np.ones(first.shape, np.bool_), np.where(first == ahead.gpus, ahead.restarting, ahead.restart)
    for _ in range(first.shape[1]):
        whole = _whole(ahead, gpus)
        until = np.where(there & (gpus > 0), lost + left * whole, np.inf)
        end = until.min(axis=1)
        passed = np.where(np.isfinite(end), np.ceil(end / ahead.interval - ROUNDED) * ahead.interval, UNENDING)[:, None]
        cost += (ahead.worth * there * np.minimum(until, passed)).sum(axis=1)
        left = np.maximum(left - np.where(gpus > 0, np.maximum(passed - lost, 0.0), 0.0) / whole, 0.0)
        there = there & (until > passed + ROUNDED) & np.isfinite(end)[:, None]
        if not there.any():
            break
        lost, before = np.maximum(lost - passed, 0.0), gpus
        gpus = _given(ahead, shares, left, there, before)
        lost = np.where(gpus == before, lost, ahead.restart)
    return cost


def _whole(ahead: Ahead, gpus: Integers) -> Floats:
    """Seconds of all that is left of each job on so many GPUs, [C, J]; of who has none anything."""
    at = np.minimum((ahead.sizes < gpus[..., None]).sum(axis=2), ahead.sizes.shape[1] - 1)
    return np.where(gpus > 0, ahead.seconds[np.arange(gpus.shape[1]), at], 1.0)


def _shares(ahead: Ahead) -> _Shares:
    fair = np.maximum(ahead.total // np.maximum(np.arange(len(ahead.worth) + 1), 1), 1)[:, None, None]
    share = np.where(ahead.sizes <= fair, ahead.seconds, np.inf).min(axis=2)
    share = np.where(np.isfinite(share), share, ahead.seconds.min(axis=1))
    share = np.where(np.isfinite(share), share, 0.0)
    return _Shares((share[:, :, None] / ahead.seconds) ** ahead.constants.damping, share)


def _given(ahead: Ahead, shares: _Shares, left: Floats, there: Booleans, has: Integers) -> Integers:
    """GPUs of each job as ``completing`` gives them, [C, J]; ``left``: part that is left of each."""
    count = there.sum(axis=1)
    seconds = left * shares.seconds[count]
    lost = ahead.restart / np.clip(seconds, max(ahead.restart, LEAST), ahead.constants.horizon_seconds)
    runs, stays = (has > 0)[..., None], ahead.sizes == has[..., None]
    moved = np.where(runs, np.maximum(1.0 - lost, 0.0)[..., None], 1.0)
    kept = np.where(stays & runs, (1.0 + lost)[..., None], moved)
    ranked = np.where(there, seconds * (1 + STEADY) ** -np.log2(1.0 + has), -1.0)
    value = (_places(ranked, ahead.constants) * ahead.worth * there)[..., None] * shares.speeds[count] * kept
    return _marginal(ahead, value, _begun(ahead, value, there))


def _places(seconds: Floats, constants: Constants) -> Floats:
    """Weight of each job's place in the order of completion, as ``completion.places``, in C candidates, [C, J]."""
    place = np.empty(seconds.shape)
    numbers = np.broadcast_to(np.arange(1.0, seconds.shape[1] + 1), seconds.shape)
    np.put_along_axis(place, np.argsort(-seconds, axis=1, kind="stable"), numbers, axis=1)
    power = 1 / (1 - constants.scaling)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)


def _begun(ahead: Ahead, value: Floats, there: Booleans) -> Integers:
    """1 for jobs that begin with their fewest GPUs, 0 with none, −1 for those that get none at all, [C, J]."""
    last = np.where(there, ahead.level, LATE).max(axis=1)[:, None]
    early = there & ((ahead.level < last) | (ahead.level == LATE)) & (ahead.sizes[:, 1] <= ahead.total)
    if not early.any():
        return np.where(there, 0, -1)
    order = np.lexsort((-value[..., 1], np.broadcast_to(ahead.level, there.shape)), axis=1)
    used = np.take_along_axis(np.where(early, ahead.sizes[:, 1], 0), order, axis=1).cumsum(axis=1)
    fits = np.empty(there.shape, np.bool_)
    np.put_along_axis(fits, order, used <= ahead.total, axis=1)
    return np.where(fits & there, early.astype(np.int64), -1)


def _marginal(ahead: Ahead, value: Floats, begin: Integers) -> Integers:
    """GPUs of each job by the largest marginal value first, in C candidates at once, [C, J]."""
    at, jobs = begin.copy(), np.arange(begin.shape[1])
    while True:
        position = np.maximum(at, 0)
        has = ahead.sizes[jobs, position]
        more = ahead.sizes - has[..., None]
        fits = (more > 0) & (more <= (ahead.total - has.sum(axis=1))[:, None, None]) & (at >= 0)[..., None]
        gain = value - np.take_along_axis(value, position[..., None], axis=2)
        slope = np.where(fits, gain / np.maximum(more, 1), 0.0).reshape(len(at), -1)
        best = slope.argmax(axis=1)
        rows = np.flatnonzero(slope[np.arange(len(at)), best] > 0)
        if not rows.size:
            return np.asarray(has, np.int64)
        job, size = np.divmod(best[rows], value.shape[2])
        at[rows, job] = size


# Rollout: what ``completing`` says and allocations near it are played forward, and the best of them is given.
#
# One step of policy iteration at the moment of the decision (Bertsekas, Tsitsiklis and Wu, “Rollout algorithms for
# combinatorial optimization”, 1997): each candidate is held until a job ends, then the rule goes on, until all have
# ended; what is compared is the weighted sum of completion times. Nobody else is expected to come, as is only believed
# where all came at once, and only few jobs can be played so in some milliseconds.


MOST_JOBS, MOST_PLAYED = 8, 12_000
"""Jobs, and candidates times jobs times sizes: what is played within 10 ms."""
AFTERWARDS = Constants(scaling=0.5, damping=1.0)
"""Of the rule that goes on in what is played; chosen, as the rest, on small systems that no benchmark judges by."""
LEAST_GAIN = 0.005
"""Of the sum of completion times, below which the rule's own answer stays: paces are measured with noise."""


def rolled_out(
    weights: Sequence[float],
    ageing_seconds: Sequence[float],
    patience: float = np.inf,
    interval: float = 60.0,
) -> Rule:
    """The rule that plays ``completing`` and allocations near it forward, and takes the cheapest.

    ``completing``, whose arguments these are, answers alone where jobs are many, came in turn or have deadlines.

    Args:
        interval: seconds between decisions.
    """
    base = completing(weights, ageing_seconds, patience)
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        wanted, jobs = base(situation), situation.jobs
        if not 0 < len(jobs.queue) <= MOST_JOBS or situation.deadlines is not None:
            return wanted
        if np.ptp(jobs.submitted) > interval:
            return wanted
        sizes, level = grid(situation), urgency(jobs, situation.now, ageing, patience)
        near = _near(wanted.gpus, sizes, level, situation)
        if len(near) == 1 or near.size * sizes.shape[1] > MOST_PLAYED:
            return wanted
        worth = weight[jobs.queue] * (1.0 if situation.factor is None else situation.factor)
        cost = costs(_ahead(situation, sizes, (worth, level), interval), near)
        best = int(cost.argmin())
        if not cost[best] < cost[0] * (1 - LEAST_GAIN):
            return wanted
        return Wanted(near[best], np.argsort(-near[best], kind="stable"), packed=True)

    return rule


def _ahead(situation: Situation, sizes: Integers, worth: tuple[Floats, Integers], interval: float) -> Ahead:
    jobs, restart = situation.jobs, situation.restart_seconds
    legal = (sizes > 0) & (sizes >= jobs.minimum[:, None]) & (sizes <= jobs.maximum[:, None])
    seconds = np.where(legal, situation.outlook.seconds_left(sizes), np.inf)
    restarting = np.where(jobs.gpus > 0, jobs.restarting, 0.0)
    return Ahead(sizes, seconds, *worth, jobs.gpus, restarting, situation.gpus, restart, interval, AFTERWARDS)


def _near(base: Integers, sizes: Integers, level: Integers, situation: Situation) -> Integers:
    """Allocations near the rule's, and near what jobs have, that keep to priorities, [C, J]; the rule's own first."""
    jobs, total = situation.jobs, situation.gpus
    every = np.concatenate([_two_changed(middle, sizes, total) for middle in (base, jobs.gpus)])
    legal = (every.sum(axis=1) <= total) & ((every == base) | (level != LATE)).all(axis=1)
    legal &= ((every == 0) | ((every >= jobs.minimum) & (every <= jobs.maximum))).all(axis=1)
    waits = (every == 0) & (jobs.minimum <= total)
    most_urgent = np.where(waits, level, level.max() + 1).min(axis=1)
    legal &= np.where(every > 0, level, LATE).max(axis=1) <= most_urgent
    others = np.unique(every[legal & (every != base).any(axis=1)], axis=0)
    return np.concatenate([base[None], others])


def _two_changed(middle: Integers, sizes: Integers, total: int) -> Integers:
    """Each job at each size, and each other one in turn at the largest that is left to it, [J · K · J, J]."""
    (count, number), jobs = sizes.shape, np.arange(len(sizes))
    found = np.tile(middle, (count, number, count, 1))
    found[jobs, :, :, jobs] = sizes[:, :, None]
    room = total - found.sum(axis=3) + found[:, :, jobs, jobs]
    at = np.maximum((sizes <= room[..., None]).sum(axis=3) - 1, 0)
    one, _, other = np.ogrid[:count, :number, :count]
    found[:, :, jobs, jobs] = np.where(one == other, found[:, :, jobs, jobs], sizes[jobs, at])
    return np.asarray(found.reshape(-1, count), np.int64)


# Jobs that have little left to gain give GPUs back: halved window by window down to a floor, restored if they revive.
#
# A job turns round once at most: what was restored is never shrunk again, so nothing flaps. The state is J columns that
# the service keeps with a run; what is left to gain comes from learning curves (``app.kinds.cluster.lengths``),
# and how much of it is too little is told in parts of what a job has reached.


UNLIMITED = np.iinfo(np.int64).max
REVIVED = 2.0


class Converging(NamedTuple):
    """J jobs.

    Attributes:
        ceiling: GPUs that each may have, ``UNLIMITED`` as long as it isn't shrunk, [J].
        since: when that was last changed, −``NEVER`` before, [J].
        expected: level up to which a job that is shrunk was expected to come at most, when it was first shrunk, [J].
        restored: whether it was shrunk and restored, [J].
    """

    ceiling: Integers
    since: Floats
    expected: Floats
    restored: NDArray[np.bool_]


class Progress(NamedTuple):
    """How J jobs do, [J] each, in the unit of their rising values; NaN where nothing can be said.

    Attributes:
        level: where they are.
        gain: what is expected to be gained until their end.
        half: of its 90 % interval; NaN where that isn't known, and no job is shrunk.
        gpus: that they have.
        floor: GPUs below which they are not shrunk.
        sizes: numbers of GPUs to which they are, ascending from 0, [R]; any, where there are none.
    """

    level: Floats
    gain: Floats
    half: Floats
    gpus: Integers
    floor: Integers
    sizes: Integers = np.zeros(0, np.int64)


class Tolerance(NamedTuple):
    """When a job has converged.

    Attributes:
        gain: part of the level below which what is left to gain is small; what a job loses is on average no more, as
            long as what it is expected to gain is right on average.
        doubt: half intervals that are added to what is expected to be left.
        window_seconds: between two halvings.
    """

    gain: float = 0.01
    doubt: float = 0.5
    window_seconds: float = 3600.0


def none(jobs: int) -> Converging:
    """Jobs that just came."""
    untold = np.full(jobs, np.nan)
    return Converging(np.full(jobs, UNLIMITED), np.full(jobs, -NEVER), untold, np.zeros(jobs, np.bool_))


def keep(converging: Converging, which: NDArray[np.bool_]) -> Converging:
    """Some of the jobs, in their order."""
    return Converging._make(column[which] for column in converging)


def join(converging: Converging, jobs: int) -> Converging:
    """More jobs at the end."""
    return Converging._make(np.concatenate(pair) for pair in zip(converging, none(jobs), strict=True))


def judged(converging: Converging, progress: Progress, now: float | Floats, tolerance: Tolerance) -> Converging:
    """Ceilings after what is known now; all arrays may have any other shape, and ``now`` one that goes with it.

    A job is halved, or has less where half doesn't fit nodes, where what is left to gain, with its doubt, is below the
    tolerance, and a window has passed since it was halved last. It is restored for good where more is left than
    ``REVIVED`` tolerances, or where it has come further than was expected at most when it was first shrunk.
    """
    scale = np.maximum(np.abs(progress.level), 1e-12)
    with np.errstate(invalid="ignore"):
        left = progress.gain + tolerance.doubt * progress.half
        small = left <= tolerance.gain * scale
        further = progress.level > converging.expected + tolerance.gain * scale
        large = progress.gain > REVIVED * tolerance.gain * scale
    shrunk = converging.ceiling < UNLIMITED
    revived = shrunk & (further | large)
    lower = np.maximum(_largest(progress.gpus // 2, progress.sizes), progress.floor)
    due = now - converging.since >= tolerance.window_seconds
    halved = small & due & ~converging.restored & ~revived & (lower < np.minimum(progress.gpus, converging.ceiling))
    first = halved & ~shrunk
    return Converging(
        ceiling=np.where(revived, UNLIMITED, np.where(halved, lower, converging.ceiling)),
        since=np.where(halved | revived, now, converging.since),
        expected=np.where(first, progress.level + progress.gain + progress.half, converging.expected),
        restored=converging.restored | revived,
    )


def _largest(gpus: Integers, sizes: Integers) -> Integers:
    """The largest of ``sizes`` that are no more than ``gpus``, of any shape."""
    return sizes[np.searchsorted(sizes, gpus, side="right") - 1] if len(sizes) else gpus


def limited(rule: Rule, converging: Converging) -> Rule:
    """A rule in whose eyes no job asks for more than its ceiling; what that frees is there for the others."""

    def within(situation: Situation) -> Wanted:
        jobs = situation.jobs
        ceiling = np.maximum(converging.ceiling, jobs.minimum)
        changed = {name: np.minimum(getattr(jobs, name), ceiling) for name in ("asked", "maximum")}
        return rule(situation._replace(jobs=jobs._replace(**changed)))

    return within
