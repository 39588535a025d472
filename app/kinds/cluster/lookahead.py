"""Lookahead: allocations compared by a short simulation, and jobs limited when they converge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import NEVER, Floats, Integers
from app.kinds.cluster.placement import Rule, Situation, TargetAllocation
from app.kinds.cluster.strategies import LATE, LEAST, STEADY, Constants, completing, grid, urgency

# Simulation of a situation's jobs until all have ended, for many first allocations at once, without arrivals.
#
# C candidates, J jobs, K sizes (numbers of GPUs) per job.


Booleans = NDArray[np.bool_]
UNENDING = 1e9
"""Seconds charged for jobs that no allocation can run."""
ROUNDED = 1e-6


class SimulationInputs(NamedTuple):
    """Inputs of the simulation of J jobs, each with K sizes (numbers of GPUs); times are seconds.

    Attributes:
        sizes: numbers of GPUs, ascending from 0, [J, K].
        seconds: time to completion on each size; infinite where it isn't allowed, [J, K].
        worth: weight per second of each job's completion time, [J].
        level: level of urgency, −1 (late) and 0 first, constant in the simulation, [J].
        gpus: GPUs held now, [J].
        restarting: time until the job trains on these GPUs, [J].
        total: GPUs of the cluster.
        restart: time lost by a change.
        interval: time between reallocations.
        constants: constants of the rule that allocates after the first end.
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
    """Equal shares of the cluster, by the number of jobs left (0 to J), for J jobs with K sizes.

    Attributes:
        speeds: speed on each size over the speed on that share, to the power of the damping, [J + 1, J, K].
        seconds: seconds to completion on that share, [J + 1, J].
    """

    speeds: Floats
    seconds: Floats


def costs(ahead: SimulationInputs, first: Integers) -> Floats:
    """Return the weighted sum of completion times in seconds, [C], of C candidate first allocations ``first`` of J
    jobs, [C, J]. A candidate is held until the first reallocation after a job ends; then the rule ``completing`` (least
    mean completion time) allocates."""
    fair = np.maximum(ahead.total // np.maximum(np.arange(len(ahead.worth) + 1), 1), 1)[:, None, None]
    share = np.where(ahead.sizes <= fair, ahead.seconds, np.inf).min(axis=2)
    share = np.where(np.isfinite(share), share, ahead.seconds.min(axis=1))
    share = np.where(np.isfinite(share), share, 0.0)
    gpus, left, cost, shares = (
        first,
        np.ones(first.shape),
        np.zeros(len(first)),
        _Shares((share[:, :, None] / ahead.seconds) ** ahead.constants.damping, share),
    )
    there, lost = np.ones(first.shape, np.bool_), np.where(first == ahead.gpus, ahead.restarting, ahead.restart)
    for _ in range(first.shape[1]):
        # Seconds that the work left at the start takes on ``gpus`` [C, J] GPUs, [C, J]; 1 in place of 0 GPUs
        at = np.minimum((ahead.sizes < gpus[..., None]).sum(axis=2), ahead.sizes.shape[1] - 1)
        whole = np.where(gpus > 0, ahead.seconds[np.arange(gpus.shape[1]), at], 1.0)
        until = np.where(there & (gpus > 0), lost + left * whole, np.inf)
        end = until.min(axis=1)
        passed = np.where(np.isfinite(end), np.ceil(end / ahead.interval - ROUNDED) * ahead.interval, UNENDING)[:, None]
        cost += (ahead.worth * there * np.minimum(until, passed)).sum(axis=1)
        left = np.maximum(left - np.where(gpus > 0, np.maximum(passed - lost, 0.0), 0.0) / whole, 0.0)
        there = there & (until > passed + ROUNDED) & np.isfinite(end)[:, None]
        if not there.any():
            break
        lost, before = np.maximum(lost - passed, 0.0), gpus
        gpus = _allocated_gpus(ahead, shares, left, there, before)
        lost = np.where(gpus == before, lost, ahead.restart)
    return cost


def _allocated_gpus(ahead: SimulationInputs, shares: _Shares, left: Floats, there: Booleans, has: Integers) -> Integers:
    """Return the GPUs of each job by the rule ``completing`` in C simulations, one for each first allocation, [C, J].

    Args:
        ahead: inputs of the simulation.
        shares: equal shares by the number of jobs left.
        left: remaining fraction 0 to 1 of each job's work, [C, J].
        there: whether each job is still present, [C, J].
        has: GPUs of each job until now, [C, J].
    """
    count = there.sum(axis=1)
    seconds = left * shares.seconds[count]
    lost = ahead.restart / np.clip(seconds, max(ahead.restart, LEAST), ahead.constants.horizon_seconds)
    runs, stays = (has > 0)[..., None], ahead.sizes == has[..., None]
    moved = np.where(runs, np.maximum(1.0 - lost, 0.0)[..., None], 1.0)
    share = np.where(stays & runs, (1.0 + lost)[..., None], moved)
    ranked = np.where(there, seconds * (1 + STEADY) ** -np.log2(1.0 + has), -1.0)
    # Weight, [C, J], of each job by its rank in the order of completion, as ``places`` does for one candidate.
    # ``ranked`` has the time left of each job in C candidates, longer for those that have many GPUs, [C, J].
    place = np.empty(ranked.shape)
    numbers = np.broadcast_to(np.arange(1.0, ranked.shape[1] + 1), ranked.shape)
    np.put_along_axis(place, np.argsort(-ranked, axis=1, kind="stable"), numbers, axis=1)
    power = 1 / (1 - ahead.constants.scaling)
    value = (
        (np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64) * ahead.worth * there)[..., None]
        * shares.speeds[count]
        * share
    )
    return _marginal(ahead, value, _start_sizes(ahead, value, there))


def _start_sizes(ahead: SimulationInputs, value: Floats, there: Booleans) -> Integers:
    """Return the index into ``sizes`` with which each of J jobs in C simulations starts, [C, J].

    It is 1 for urgent jobs, which get their minimum first, by level and, within it, by ``value`` [C, J, K] of that
    size; 0 for other jobs; −1 for jobs that are absent or don't fit. ``there``: presence, [C, J]."""
    last = np.where(there, ahead.level, LATE).max(axis=1)[:, None]
    early = there & ((ahead.level < last) | (ahead.level == LATE)) & (ahead.sizes[:, 1] <= ahead.total)
    if not early.any():
        return np.where(there, 0, -1)
    order = np.lexsort((-value[..., 1], np.broadcast_to(ahead.level, there.shape)), axis=1)
    used = np.take_along_axis(np.where(early, ahead.sizes[:, 1], 0), order, axis=1).cumsum(axis=1)
    fits = np.empty(there.shape, np.bool_)
    np.put_along_axis(fits, order, used <= ahead.total, axis=1)
    return np.where(fits & there, early.astype(np.int64), -1)


def _marginal(ahead: SimulationInputs, value: Floats, begin: Integers) -> Integers:
    """Return the GPUs of J jobs in C simulations, [C, J]: the step of largest value per GPU is added until none fits.
    ``value`` of each of K sizes is [C, J, K]; ``begin`` [C, J]: start indices into ``sizes``, −1: none."""
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


# Rollout: simulate the allocation of ``completing`` and allocations near it, and take the best.
#
# One step of policy iteration at the time of the decision (Bertsekas, Tsitsiklis and Wu, “Rollout algorithms for
# combinatorial optimization”, 1997): each candidate is held until a job ends, then the rule goes on until all have
# ended; candidates compare by the weighted sum of completion times. It assumes no arrivals, so it is used only if all
# jobs came at once, and for few jobs, to take only some milliseconds.


MOST_JOBS, MOST_PLAYED = 8, 12_000
"""Limits on jobs, and on candidates × jobs × sizes, so that a simulation takes less than 10 ms."""
AFTERWARDS = Constants(scaling=0.5, damping=1.0)
"""Constants of the rule inside the simulation, chosen on small systems that no benchmark uses."""
LEAST_GAIN = 0.005
"""Relative reduction of the weighted completion times up to which the rule's own allocation stays: step times are
noisy."""


def rolled_out(
    weights: Sequence[float],
    ageing_seconds: Sequence[float],
    patience: float = np.inf,
    interval: float = 60.0,
) -> Rule:
    """Make a rule that simulates the allocation of ``completing`` (least mean completion time) and those near it, and
    returns the one of least cost. The rule falls back to ``completing`` with more than ``MOST_JOBS`` jobs, with
    deadlines, or if jobs came more than an interval apart.

    Args:
        weights: weight of completion times by queue, [queues].
        ageing_seconds: seconds of waiting after which a job rises one queue; infinite: never, [queues].
        patience: seconds of waiting after which a job goes before all others.
        interval: seconds between decisions.
    """
    base = completing(weights, ageing_seconds, patience)
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> TargetAllocation:
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
        return TargetAllocation(near[best], np.argsort(-near[best], kind="stable"), packed=True)

    return rule


def _ahead(situation: Situation, sizes: Integers, worth: tuple[Floats, Integers], interval: float) -> SimulationInputs:
    jobs, restart = situation.jobs, situation.restart_seconds
    legal = (sizes > 0) & (sizes >= jobs.minimum[:, None]) & (sizes <= jobs.maximum[:, None])
    seconds = np.where(legal, situation.outlook.seconds_left(sizes), np.inf)
    restarting = np.where(jobs.gpus > 0, jobs.restarting, 0.0)
    return SimulationInputs(
        sizes, seconds, *worth, jobs.gpus, restarting, situation.gpus, restart, interval, AFTERWARDS
    )


def _near(base: Integers, sizes: Integers, level: Integers, situation: Situation) -> Integers:
    """Return C allowed allocations of J jobs near the rule's and near the current one, [C, J]; the rule's own is first.

    Args:
        base: the rule's allocation, [J].
        sizes: numbers of GPUs, ascending from 0, [J, K].
        level: level of urgency of each job, 0 the most urgent, [J]; no job gets GPUs while a more urgent one waits.
        situation: the jobs and nodes.
    """
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
    """Return the allocations, [J · K · J, J], in which one job has another size and a second job the largest that then
    fits. ``middle`` [J]: the allocation that they start from; ``sizes`` [J, K]: numbers of GPUs; ``total``: all
    GPUs."""
    (count, number), jobs = sizes.shape, np.arange(len(sizes))
    result = np.tile(middle, (count, number, count, 1))
    result[jobs, :, :, jobs] = sizes[:, :, None]
    room = total - result.sum(axis=3) + result[:, :, jobs, jobs]
    at = np.maximum((sizes <= room[..., None]).sum(axis=3) - 1, 0)
    one, _, other = np.ogrid[:count, :number, :count]
    result[:, :, jobs, jobs] = np.where(one == other, result[:, :, jobs, jobs], sizes[jobs, at])
    return np.asarray(result.reshape(-1, count), np.int64)


# Jobs with little left to gain give GPUs back: halved once per window down to a floor, restored if they revive.
#
# A restored job is never shrunk again, so that allocations don't oscillate. The state is J columns that the service
# keeps with a run; the remaining gain comes from learning curves (``app.kinds.cluster.lengths``), and the tolerance is
# a fraction of the level a job has reached.


UNLIMITED = np.iinfo(np.int64).max
REVIVED = 2.0


class Converging(NamedTuple):
    """Convergence state of J jobs.

    Attributes:
        ceiling: most GPUs that the job may have, ``UNLIMITED`` unless shrunk, [J].
        since: time of the ceiling's last change, seconds since the run's start; −``NEVER`` before, [J].
        expected: upper bound of the predicted final value when the job was first shrunk; NaN before, [J].
        restored: whether the job was shrunk and then restored, [J].
    """

    ceiling: Integers
    since: Floats
    expected: Floats
    restored: NDArray[np.bool_]


class Progress(NamedTuple):
    """Predicted progress of J jobs, in the unit of their rising values; NaN: unknown.

    Attributes:
        level: current value, [J].
        gain: expected increase until the last iteration, [J].
        half: half-width of the 90 % interval of ``gain``, [J]; NaN: unknown, and the job isn't shrunk.
        gpus: GPUs held, [J].
        floor: fewest GPUs it can be shrunk to, [J].
        sizes: allowed numbers of GPUs, ascending from 0, [sizes]; empty: any.
    """

    level: Floats
    gain: Floats
    half: Floats
    gpus: Integers
    floor: Integers
    sizes: Integers = np.zeros(0, np.int64)


class Tolerance(NamedTuple):
    """Criterion of convergence.

    Attributes:
        gain: fraction (0 to 1) of the level up to which the remaining gain counts as small.
        doubt: number of half-widths of the 90 % interval added to the expected remaining gain before it is compared.
        window_seconds: least seconds between two halvings of a job.
    """

    gain: float = 0.01
    doubt: float = 0.5
    window_seconds: float = 3600.0


def none(jobs: int) -> Converging:
    """Return the convergence state of ``jobs`` new jobs: no ceilings."""
    untold = np.full(jobs, np.nan)
    return Converging(np.full(jobs, UNLIMITED), np.full(jobs, -NEVER), untold, np.zeros(jobs, np.bool_))


def keep(converging: Converging, which: NDArray[np.bool_]) -> Converging:
    """Return the convergence state of the jobs selected by the mask ``which`` [J], in their order."""
    return Converging._make(column[which] for column in converging)


def join(converging: Converging, jobs: int) -> Converging:
    """Return ``converging`` with the state of ``jobs`` new jobs at the end."""
    return Converging._make(np.concatenate(pair) for pair in zip(converging, none(jobs), strict=True))


def update_convergence(
    converging: Converging, progress: Progress, now: float | Floats, tolerance: Tolerance
) -> Converging:
    """Return the updated convergence state at ``now``, seconds since the run's start; arrays may have any common shape.

    A job's ceiling is halved, to an allowed size, if its remaining gain plus doubt is within the tolerance and a window
    has passed since the last halving. It is lifted for good if more than ``REVIVED`` tolerances remain, or if the job
    exceeds the upper bound predicted when it was first shrunk."""
    scale = np.maximum(np.abs(progress.level), 1e-12)
    with np.errstate(invalid="ignore"):
        left = progress.gain + tolerance.doubt * progress.half
        small = left <= tolerance.gain * scale
        further = progress.level > converging.expected + tolerance.gain * scale
        large = progress.gain > REVIVED * tolerance.gain * scale
    shrunk = converging.ceiling < UNLIMITED
    revived = shrunk & (further | large)
    # Largest of ``sizes`` up to each of ``gpus``, of the shape of ``gpus``; ``gpus`` if ``sizes`` is empty
    gpus = progress.gpus // 2
    lower = np.maximum(
        progress.sizes[np.searchsorted(progress.sizes, gpus, side="right") - 1] if len(progress.sizes) else gpus,
        progress.floor,
    )
    due = now - converging.since >= tolerance.window_seconds
    halved = small & due & ~converging.restored & ~revived & (lower < np.minimum(progress.gpus, converging.ceiling))
    first = halved & ~shrunk
    return Converging(
        ceiling=np.where(revived, UNLIMITED, np.where(halved, lower, converging.ceiling)),
        since=np.where(halved | revived, now, converging.since),
        expected=np.where(first, progress.level + progress.gain + progress.half, converging.expected),
        restored=converging.restored | revived,
    )


def with_ceilings(rule: Rule, converging: Converging) -> Rule:
    """Make a rule that applies ``rule`` after cutting requested and maximum GPUs to each job's ceiling or minimum."""

    def within(situation: Situation) -> TargetAllocation:
        jobs = situation.jobs
        ceiling = np.maximum(converging.ceiling, jobs.minimum)
        changed = {name: np.minimum(getattr(jobs, name), ceiling) for name in ("requested", "maximum")}
        return rule(situation._replace(jobs=jobs._replace(**changed)))

    return within
