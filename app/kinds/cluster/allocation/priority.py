"""Queues of several priorities with ageing: who waits long enough counts as of the next more urgent queue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.jobs import Floats, Integers, Jobs

LATE = -1
"""The urgency of who has waited longer than anybody may; it comes before all queues."""


def urgency(jobs: Jobs, now: float, ageing_seconds: Floats, patience: float = np.inf) -> Integers:
    """The queue that each job counts as, 0 the most urgent, [J].

    A job rises by one for each ``ageing_seconds`` [Q] of its queue that it has waited in all, before it first ran or
    since; infinite: never. While it runs it stays where it is, so that it isn't sent back for having been served. Who
    has waited for more than ``patience`` seconds is ``LATE``.
    """
    waited = np.maximum(now - jobs.submitted - jobs.running, 0.0)
    risen = np.maximum(jobs.queue - (waited / ageing_seconds[jobs.queue]).astype(np.int64), 0)
    return np.where(waited > patience, LATE, risen)


def prioritised(ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """What each asked for, the most urgent first, of equal ones the first submitted.

    Who doesn't fit keeps all after it waiting, whatever they ask for: nobody who is less urgent runs in its stead, and
    whoever has waited for its queue's number times ``ageing_seconds`` has only those before it that came before it.
    """
    ageing = np.array(ageing_seconds, np.float64)

    def rule(situation: Situation) -> Wanted:
        jobs = situation.jobs
        order = np.lexsort((jobs.submitted, urgency(jobs, situation.now, ageing, patience)))
        return Wanted(admitted_in_order(jobs.asked, order, situation.gpus), order)

    return rule


def admitted_in_order(wanted: Integers, order: Integers, free: int) -> Integers:
    """What each job wants in its turn, until one doesn't fit, [J]; what can't ever fit keeps nobody waiting."""
    needed = np.where(wanted <= free, wanted, 0)[order]
    gpus = np.zeros(len(order), np.int64)
    gpus[order] = np.where(needed.cumsum() <= free, needed, 0)
    return gpus
