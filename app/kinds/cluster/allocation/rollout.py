"""Rollout: what ``completing`` says and allocations near it are played forward, and the best of them is given.

One step of policy iteration at the moment of the decision (Bertsekas, Tsitsiklis and Wu, “Rollout algorithms for
combinatorial optimization”, 1997): each candidate is held until a job ends, then the rule goes on, until all have
ended; what is compared is the weighted sum of completion times. Nobody else is expected to come, as is only believed
where all came at once, and only few jobs can be played so in some milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.kinds.cluster.allocation.ahead import Ahead, costs
from app.kinds.cluster.allocation.completion import Constants, completing
from app.kinds.cluster.allocation.priority import LATE, urgency
from app.kinds.cluster.allocation.situation import Rule, Situation, Wanted
from app.kinds.cluster.allocation.sizes import grid
from app.kinds.cluster.jobs import Floats, Integers

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
    """See the module; arguments as of ``completing``, which answers where jobs are many, came in turn or are due.

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
