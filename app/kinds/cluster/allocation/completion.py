"""The mean completion time: GPUs go where they shorten it most, job by job."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.kinds.cluster.allocation.fairness import fitting
from app.kinds.cluster.allocation.marginal import marginal
from app.kinds.cluster.allocation.priority import urgency
from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.jobs import Floats, Integers

SCALING, DAMPING, HORIZON_SECONDS = 0.75, 0.8, 1000.0
TINY = 1e-9


def completing(weights: Sequence[float], ageing_seconds: Sequence[float]) -> Rule:
    """Jobs of several queues, the most urgent first: of each its weight, and the seconds after which its jobs rise.

    While a job waits, nobody who is less urgent starts or goes on; beyond that GPUs go where they shorten the weighted
    mean completion time most.
    """
    weight, ageing = np.array(weights, np.float64), np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs, sizes = situation.jobs, fitting(situation.capacity)
        value = values(situation, sizes, weight[jobs.queue])
        begin = _admitted(situation, sizes, value, urgency(jobs, situation.now, ageing))
        gpus = sizes[marginal(value, sizes, begin, situation.gpus - int(sizes[np.maximum(begin, 0)].sum()))]
        return Wanted(gpus, np.argsort(-gpus, kind="stable"), packed=True)

    return rule


soonest = completing([1.0], [np.inf])
"""Of one queue: GPUs shorten the mean completion time."""


def _admitted(situation: Situation, sizes: Integers, value: Floats, level: Integers) -> Integers:
    """Where jobs begin, [J]: all but the least urgent ones with the fewest GPUs that they can use; −1: not at all."""
    least = np.where(np.isfinite(value[:, 1:]), sizes[1:], situation.gpus + 1).min(axis=1, initial=situation.gpus + 1)
    possible = least <= situation.gpus
    first = possible & (level < level.max(initial=0))
    order = np.lexsort((situation.jobs.submitted, level))
    wanted = np.where(first, least, 0)[order]
    fits = np.empty(len(order), np.bool_)
    fits[order] = wanted.cumsum() <= situation.gpus
    return np.where(fits, np.searchsorted(sizes, np.where(first, least, 0)), -1)


def values(situation: Situation, sizes: Integers, weight: Floats) -> Floats:
    """What numbers of GPUs are worth to each job, −∞ where it can't use so many, [J, R].

    Speeds are relative to that on an equal share, and count by ``places``. A change of nodes takes away what is lost by
    a restart, if the next comes after ``HORIZON_SECONDS``, or after the job.
    """
    jobs = situation.jobs
    each = situation.outlook.seconds_left(np.broadcast_to(sizes, (len(jobs.asked), len(sizes))))
    fair = sizes <= max(1, situation.gpus // max(1, len(jobs.asked)))
    seconds = each[:, fair].min(axis=1)
    seconds = np.where(np.isfinite(seconds), seconds, each.min(axis=1))
    seconds = np.where(np.isfinite(seconds), seconds, 0.0)
    count = weight * places(seconds)
    lost = situation.restart_seconds / np.clip(seconds, max(situation.restart_seconds, TINY), HORIZON_SECONDS)
    runs, stays = jobs.gpus > 0, sizes == jobs.gpus[:, None]
    left = np.where(stays | ~runs[:, None], 1.0, np.maximum(1.0 - lost, 0.0)[:, None])
    worth = count[:, None] * (seconds[:, None] / each) ** DAMPING * left
    illegal = (sizes > jobs.maximum[:, None]) | ((sizes < jobs.minimum[:, None]) & (sizes > 0))
    return np.where(illegal, -np.inf, worth)


def places(seconds: Floats) -> Floats:
    """What a second less of each job is worth by how many jobs it keeps waiting, [J]; ``seconds`` are left of each.

    If speed grew as GPUs to the power of ``SCALING``, and no more jobs came, the sum of completion times fell by so
    much for each second less of the i-th longest job: (iᶜ − (i − 1)ᶜ)^{1/c} with c = 1/(1 − SCALING) (Berg,
    Vesilo and Harchol-Balter, “heSRPT: Parallel scheduling to minimize mean slowdown”, 2020, theorem 3).
    """
    place = np.empty(len(seconds))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(seconds) + 1)
    power = 1 / (1 - SCALING)
    return np.asarray((place**power - (place - 1) ** power) ** (1 / power), np.float64)
