"""Which job gave GPUs to which: node by node, what some leave is what others take."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.signedinteger[Any]]


def trades(before: Counts, after: Counts) -> list[dict[int, int]]:
    """GPUs by the other job, for each of C jobs that change from ``before`` to ``after``, [C, N] each.

    A job that has more in the end is told whom they come from, one that has fewer where they went; GPUs that were free,
    or stay so, are nobody's. On a node those who leave give to those who come in the order of the jobs.
    """
    more = after - before
    net = more.sum(axis=1)
    given: list[dict[int, int]] = [defaultdict(int) for _ in range(len(more))]
    for node in np.flatnonzero((more > 0).any(axis=0) & (more < 0).any(axis=0)).tolist():
        column = more[:, node]
        for giver, taker, gpus in _matched(column):
            if net[taker] > 0:
                given[taker][giver] += gpus
            if net[giver] < 0:
                given[giver][taker] += gpus
    return [dict(one) for one in given]


def _matched(column: Counts) -> list[tuple[int, int, int]]:
    """Giver, taker and GPUs on one node, [C]."""
    givers, takers = np.flatnonzero(column < 0), np.flatnonzero(column > 0)
    left, wanted = (-column[givers]).tolist(), column[takers].tolist()
    found, one, other = [], 0, 0
    while one < len(left) and other < len(wanted):
        gpus = min(left[one], wanted[other])
        found.append((int(givers[one]), int(takers[other]), gpus))
        left[one] -= gpus
        wanted[other] -= gpus
        one += left[one] == 0
        other += wanted[other] == 0
    return found
