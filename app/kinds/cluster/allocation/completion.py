"""The mean completion time: GPUs go where they shorten it most, job by job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.fairness import fitting
from app.kinds.cluster.allocation.marginal import marginal
from app.kinds.cluster.allocation.priority import LATE, urgency
from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.allocation.sizes import grid
from app.kinds.cluster.jobs import Floats, Integers

MOST_TRIED = 16
"""Jobs with a deadline for which all others are placed anew."""
TINY, STEADY = 1e-9, 0.05


class Constants(NamedTuple):
    """Chosen by ``benchmarks.cluster_agents``; what they are worth hardly depends on them.

    Attributes:
        scaling: power of GPUs by which speed is taken to grow where jobs are ranked.
        damping: power of a speed-up that counts.
        horizon_seconds: after which the next change of a job's nodes is expected.
    """

    scaling: float = 0.75
    damping: float = 0.8
    horizon_seconds: float = 1000.0


USUAL = Constants()


def completing(
    weights: Sequence[float], ageing_seconds: Sequence[float], patience: float = np.inf, constants: Constants = USUAL
) -> Rule:
    """Jobs of several queues, the most urgent first: of each its weight, and the seconds after which its jobs rise.

    While a job waits, nobody who is less urgent starts or goes on; beyond that GPUs go where they shorten the weighted
    mean completion time most. So an urgent job has its fewest GPUs before anybody else, and of those that would help it
    little, what its weight is worth. Who is late has its fewest, in order of submission.

    Args:
        weights: of a job's completion time, by queue.
        ageing_seconds, patience: as in ``urgency``.
        constants: of ``values``.
    """
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs, sizes = situation.jobs, grid(situation)
        worth = weight[jobs.queue] * (1.0 if situation.factor is None else situation.factor)
        value, due = values(situation, sizes, worth, constants), in_time(situation, sizes, worth, constants)
        level = urgency(jobs, situation.now, ageing, patience)
        late = level == LATE
        begin = _admitted(situation, sizes, np.where(late, -jobs.submitted, _first(value, sizes)), level)
        value = value if due is None else value + due
        value = np.where(late[:, None] & (sizes > jobs.minimum[:, None]), -np.inf, value)
        at = np.maximum(_best(value, sizes, begin, situation.gpus, due), 0)
        gpus = np.take_along_axis(sizes, at[:, None], axis=1)[:, 0]
        return Wanted(gpus, np.argsort(-gpus, kind="stable"), packed=True)

    return rule


soonest = completing([1.0], [np.inf])
"""Of one queue: GPUs shorten the mean completion time."""


def _best(value: Floats, sizes: Integers, begin: Integers, gpus: int, due: Floats | None) -> Integers:
    """Positions of the sizes that jobs end at, [J].

    GPUs that make a job be in time may be worth more together than each by itself: where steps have left it without, it
    begins with them, if all are worth more then; jobs that take few come first.
    """

    def built(begins: Integers) -> Integers:
        has = int(np.take_along_axis(sizes, np.maximum(begins, 0)[:, None], axis=1).sum())
        return marginal(value, sizes, begins, gpus - has) if has <= gpus else begins

    at = built(begin)
    if due is None:
        return at
    rows, enough = np.arange(len(at)), (2 * due >= due.max(axis=1, initial=0.0)[:, None]).argmax(axis=1)
    short = np.flatnonzero((at >= 0) & (at < enough) & (begin < enough))
    for job in short[np.argsort(sizes[rows, enough][short], kind="stable")][:MOST_TRIED].tolist():
        begins = begin.copy()
        begins[job] = enough[job]
        other = built(begins)
        if value[rows, np.maximum(other, 0)].sum() > value[rows, np.maximum(at, 0)].sum():
            begin, at = begins, other
    return at


def _first(value: Floats, sizes: Integers) -> Floats:
    """What the fewest GPUs that each job can use are worth to it, [J]; −∞: it can use none."""
    return np.take_along_axis(value, (sizes > 0).argmax(axis=1)[:, None], axis=1)[:, 0]


def _admitted(situation: Situation, sizes: Integers, first: Floats, level: Integers) -> Integers:
    """Where jobs begin, [J]: with the fewest GPUs that they can use, in order of urgency; −1: not at all.

    Of equally urgent ones those of the largest ``first`` [J] come first. The least urgent begin with nothing, but for
    who is late; who could not run on all nodes keeps nobody waiting.
    """
    early = (level < level.max(initial=0)) | (level == LATE)
    at = np.where(early & (situation.jobs.minimum <= situation.gpus), (sizes > 0).argmax(axis=1), 0)
    order = np.lexsort((-first, level))
    wanted = np.take_along_axis(sizes, at[:, None], axis=1)[order, 0]
    fits = np.empty(len(order), np.bool_)
    fits[order] = wanted.cumsum() <= situation.gpus
    return np.where(fits, at, -1)


def values(situation: Situation, sizes: Integers, weight: Floats, constants: Constants = USUAL) -> Floats:
    """What numbers of GPUs are worth to each job, −∞ where it can't use so many, [J, K] as ``sizes``.

    Speeds are relative to that on an equal share, and count by ``places``; for that what is left of a job counts 5 %
    less whenever its GPUs double, so that ranks don't change with every measurement. A change of nodes takes away what
    is lost by a restart, if the next comes after ``horizon_seconds``, or after the job; to stay is worth as much more,
    since who gives way restarts later. So of jobs that are alike nobody gives way to another.
    """
    jobs = situation.jobs
    each = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    seconds = usual_seconds(situation, each)
    count = weight * places(seconds * (1 + STEADY) ** -np.log2(1.0 + jobs.gpus), constants.scaling)
    least = max(situation.restart_seconds, TINY)
    lost = situation.restart_seconds / np.clip(seconds, least, constants.horizon_seconds)
    runs, stays = jobs.gpus > 0, sizes == jobs.gpus[:, None]
    moved = np.where(runs, np.maximum(1.0 - lost, 0.0), 1.0)
    left = np.where(stays & runs[:, None], (1.0 + lost)[:, None], moved[:, None])
    worth = count[:, None] * (seconds[:, None] / each) ** constants.damping * left
    illegal = (sizes > jobs.maximum[:, None]) | ((sizes < jobs.minimum[:, None]) & (sizes > 0))
    return np.where(illegal, -np.inf, worth)


def usual_seconds(situation: Situation, each: Floats) -> Floats:
    """Seconds that are left of jobs on an equal share, or else on what is best of ``each`` [J, K]; 0: unknown, [J]."""
    count, shares = len(situation.jobs.asked), fitting(situation.capacity)
    shares = shares[(shares > 0) & (shares <= max(1, situation.gpus // max(1, count)))]
    usual = situation.outlook.seconds_left(np.broadcast_to(shares, (count, len(shares))))
    seconds = usual.min(axis=1, initial=np.inf)
    seconds = np.where(np.isfinite(seconds), seconds, each.min(axis=1))
    return np.where(np.isfinite(seconds), seconds, 0.0)


def in_time(situation: Situation, sizes: Integers, weight: Floats, constants: Constants) -> Floats | None:
    """What numbers of GPUs are worth for deadlines, [J, K] as ``sizes``; None: no job has any.

    To be in time is worth as much as the usual speed of all jobs together, by how probable it is.
    """
    due, jobs = situation.deadlines, situation.jobs
    if due is None:
        return None
    seconds = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    moved = np.where(sizes == jobs.gpus[:, None], 0.0, situation.restart_seconds)
    all_jobs = float(weight.mean() * places(np.arange(len(weight), dtype=np.float64), constants.scaling).sum())
    return all_jobs * due.worth[:, None] * due.chance(situation.now, seconds + moved)


def places(seconds: Floats, scaling: float = USUAL.scaling) -> Floats:
    """What a second less of each job is worth by how many jobs it keeps waiting, [J]; ``seconds`` are left of each.

    If speed grew as GPUs to the power of ``scaling``, and no more jobs came, the sum of completion times fell by so
    much for each second less of the i-th longest job: (iᶜ − (i − 1)ᶜ)^{1/c} with c = 1/(1 − scaling) (Berg,
    Vesilo and Harchol-Balter, “heSRPT: Parallel scheduling to minimize mean slowdown”, 2020, theorem 3).
    """
    place = np.empty(len(seconds))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(seconds) + 1)
    power = 1 / (1 - scaling)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)
