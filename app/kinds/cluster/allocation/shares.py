"""Plain rules: equal shares, first come first served, shortest remaining time first."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.situation import Situation, Wanted, admitted, in_order
from app.kinds.cluster.jobs import Integers


def equal_share(situation: Situation) -> Wanted:
    """As many GPUs for each job as for any other, within what each can use; the earlier jobs get what is left over."""
    jobs, free = situation.jobs, situation.gpus
    gpus = admitted(jobs.minimum, np.arange(len(jobs.minimum)), free)
    free -= int(gpus.sum())
    while free:
        open_ = (gpus > 0) & (gpus < jobs.maximum)
        if not open_.any():
            break
        least = gpus[open_].min()
        raised = np.flatnonzero(open_ & (gpus == least))[:free]
        gpus[raised] += 1
        free -= len(raised)
    return in_order(gpus)


def fifo(situation: Situation) -> Wanted:
    """What each asked for, in order of submission; who doesn't fit keeps all later ones waiting."""
    asked = situation.jobs.asked
    return in_order(np.where(asked.cumsum() <= situation.gpus, asked, 0))


def srtf(situation: Situation) -> Wanted:
    """What each asked for, the shortest remaining time on that first; who doesn't fit lets later ones pass."""
    order = shortest_first(situation)
    return Wanted(admitted(situation.jobs.asked, order, situation.gpus), order)


def shortest_first(situation: Situation) -> Integers:
    """Jobs by the time that is left on the GPUs that they asked for, [J]; unknown times last."""
    seconds, asked = situation.outlook.update_seconds(), situation.jobs.asked
    left = seconds[np.arange(len(asked)), np.minimum(asked, seconds.shape[1] - 1)] * situation.outlook.updates()
    return np.argsort(left, kind="stable")
