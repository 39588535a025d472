"""The rules that answer without an agent, and that agents are held against: each under the priorities of the spec."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from app.kinds.cluster.allocation.completion import completing
from app.kinds.cluster.allocation.fairness import goodput
from app.kinds.cluster.allocation.levels import in_levels
from app.kinds.cluster.allocation.optimus import optimus
from app.kinds.cluster.allocation.priority import prioritised
from app.kinds.cluster.allocation.rollout import rolled_out
from app.kinds.cluster.allocation.shares import equal_share, fifo, srtf
from app.kinds.cluster.allocation.situation import Rule
from app.kinds.cluster.allocation.slaq import slaq
from app.kinds.cluster.allocation.tiresias import tiresias
from app.kinds.cluster.spec import ClusterSpec

IN_ORDER = "priority"
"""It asks nothing of an outlook."""
WITH_MODEL = "soonest"
"""What answers where no agent does."""
AHEAD = "rollout"
"""What answers in its stead while nobody is expected to come: it looks until the end of those that are there."""
WEIGHED = "weighed"
"""What answers by an agent: ``WITH_MODEL``, with weights of jobs that the agent changes."""
LEVELLED: Mapping[str, Rule] = {
    "srtf": srtf,
    "fifo": fifo,
    "equal_share": equal_share,
    "tiresias": tiresias,
    "optimus": optimus,
    "goodput": goodput,
    "slaq": slaq,
}


def rules(spec: ClusterSpec) -> dict[str, Rule]:
    """By name."""
    ageing, patience = [queue.ageing_seconds or np.inf for queue in spec.queues], spec.patience_seconds
    weights = [queue.weight for queue in spec.queues]
    levelled = {name: in_levels(rule, ageing, patience) for name, rule in LEVELLED.items()}
    known = {IN_ORDER: prioritised(ageing, patience), WITH_MODEL: completing(weights, ageing, patience)}
    known[AHEAD] = rolled_out(weights, ageing, patience, spec.interval_seconds)
    return known | levelled
