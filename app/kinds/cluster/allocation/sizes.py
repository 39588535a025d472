"""Numbers of GPUs that jobs may have."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.fairness import fitting
from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Integers

MOST_MULTIPLES = 16
"""Of nodes; beyond, numbers of nodes double."""


def grid(situation: Situation) -> Integers:
    """Numbers of GPUs for each job: 0, and from its fewest to its most, what it has among them, not descending, [J, K].

    They are numbers that fit nodes, see ``fitting``, clipped; so some stand several times.
    """
    jobs, fit = situation.jobs, thinned(situation.capacity)
    most = np.clip(jobs.maximum, jobs.minimum, situation.gpus)
    sizes = np.concatenate([np.tile(fit, (len(most), 1)), jobs.gpus[:, None]], axis=1)
    sizes = np.sort(np.clip(sizes, jobs.minimum[:, None], most[:, None]), axis=1)
    return np.concatenate([np.zeros((len(most), 1), np.int64), sizes], axis=1)


def thinned(capacity: Integers) -> Integers:
    """Numbers that fit nodes, from 0 on, of many multiples of nodes few, [R]; on a single small node any fits."""
    node = max(1, int(capacity.max(initial=0)))
    if len(capacity) == 1 and node <= MOST_MULTIPLES:
        return np.arange(int(capacity.sum()) + 1)
    sizes = fitting(capacity)
    multiples = sizes // node
    return sizes[(multiples <= MOST_MULTIPLES) | (multiples & (multiples - 1) == 0)]
