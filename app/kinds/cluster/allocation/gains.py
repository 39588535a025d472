"""GPUs where they bring most: job by job to the next number of them that saves most for each, as long as any is free.

Who is admitted, and in which order, is priorities' with ageing; what more GPUs are worth is the outlook's. Sums stay
within what is there by construction: nothing is given that isn't free.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster.allocation.fairness import fitting
from app.kinds.cluster.allocation.priority import urgency
from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.jobs import Floats, Integers

MOST_MULTIPLES = 16
"""Of nodes; beyond, numbers of nodes double."""


def greatest_gain(ageing_seconds: Sequence[float], weights: Sequence[float], patience: float = np.inf) -> Rule:
    """Everybody's fewest GPUs, the most urgent first, then more where the weighted time that they save is largest.

    Who doesn't fit keeps all after it waiting, as in ``prioritised``: nobody who is less urgent runs in its stead.

    Args:
        ageing_seconds: of each queue, [Q]; infinite: never.
        weights: of the completion times of each queue's jobs, [Q].
        patience: seconds of waiting after which a job comes first.
    """
    ageing, worth = np.array(ageing_seconds, np.float64), np.array(weights, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs = situation.jobs
        order = np.lexsort((jobs.submitted, urgency(jobs, situation.now, ageing, patience)))
        gpus = admitted_in_order(jobs.minimum, order, situation.gpus)
        sizes = grid(situation)
        value = -worth[jobs.queue][:, None] * seconds_on(situation, sizes)
        grow(gpus, steps(sizes, value), situation.gpus - int(gpus.sum()))
        return Wanted(gpus, np.argsort(-gpus, kind="stable"), packed=True)

    return rule


def admitted_in_order(minimum: Integers, order: Integers, free: int) -> Integers:
    """The fewest GPUs of each job in its turn, until one doesn't fit, [J]; what can't ever fit keeps nobody waiting."""
    needed = np.where(minimum <= free, minimum, 0)[order]
    gpus = np.zeros(len(order), np.int64)
    gpus[order] = np.where(needed.cumsum() <= free, needed, 0)
    return gpus


def grid(situation: Situation) -> Integers:
    """Numbers of GPUs that each job may have, from its fewest to its most, what it has among them, ascending, [J, K].

    They are numbers that fit nodes, see ``fitting``, clipped; so some stand several times.
    """
    jobs = situation.jobs
    most = np.clip(jobs.maximum, jobs.minimum, situation.gpus)
    sizes = np.broadcast_to(_thinned(situation.capacity), (len(most), len(_thinned(situation.capacity))))
    sizes = np.concatenate([sizes, jobs.gpus[:, None]], axis=1)
    return np.sort(np.clip(sizes, jobs.minimum[:, None], most[:, None]), axis=1)


def _thinned(capacity: Integers) -> Integers:
    sizes, node = fitting(capacity), max(1, int(capacity.max(initial=0)))
    multiples = sizes // node
    return sizes[(multiples <= MOST_MULTIPLES) | (multiples & (multiples - 1) == 0)]


def seconds_on(situation: Situation, sizes: Integers) -> Floats:
    """Seconds until each job is finished, a restart included where its number changes, [J, K]."""
    held = situation.jobs.gpus[:, None]
    left = situation.outlook.seconds_left(sizes)
    return np.asarray(left + situation.restart_seconds * (sizes != held), np.float64)


class Steps(NamedTuple):
    """Steps that jobs may take, the best first; those of one job in their order.

    Attributes:
        job: positions, [S].
        start, end: GPUs before and after, [S].
    """

    job: Integers
    start: Integers
    end: Integers


def steps(sizes: Integers, value: Floats) -> Steps:
    """The steps of each job's upper hull of value over GPUs, by what each GPU of it brings; never one that brings none.

    Args:
        sizes: GPUs, ascending, [J, K].
        value: of them, [J, K].
    """
    more = sizes[:, None, :] - sizes[:, :, None]  # [J, K, K]
    with np.errstate(invalid="ignore", divide="ignore"):
        gain = np.where(more > 0, (value[:, None, :] - value[:, :, None]) / more, -np.inf)
    gain = np.nan_to_num(gain, nan=-np.inf, posinf=np.finfo(np.float64).max)
    following, best = gain.argmax(axis=2), gain.max(axis=2)  # [J, K]
    at, rows = np.zeros(len(sizes), np.int64), np.arange(len(sizes))
    found: list[tuple[Floats, Integers, Integers, Integers]] = []
    while rows.size:
        rows = rows[best[rows, at[rows]] > 0]
        here, there = at[rows], following[rows, at[rows]]
        found.append((best[rows, here], rows, sizes[rows, here], sizes[rows, there]))
        at[rows] = there
    gains, job, start, end = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(-gains, kind="stable")  # a job's own gains fall, and stand in their order
    return Steps(job[order], start[order], end[order])


def grow(gpus: Integers, wanted: Steps, free: int) -> None:
    """Take the steps that still fit, the best first; who can't take one takes none after it; ``gpus`` changes, [J]."""
    for job, start, end in zip(*(column.tolist() for column in wanted), strict=True):
        if gpus[job] == start and end - start <= free:
            gpus[job] = end
            free -= end - start
            if not free:
                return
