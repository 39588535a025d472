"""Where an exported table has its nodes: iteration bins, feature nodes, and all their inputs."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from workers.estimators.base import Floats

MOST_BINS = 128
MOST_NODES = 9
MOST_CELLS = 256
MOST_INPUTS = 60_000  # allocations · feature cells
MOST_ENTRIES = 8_000_000  # per metric: A · C · I


def iteration_bins(iterations: int, inputs: int) -> NDArray[np.int32]:
    """Bin of each iteration, [iterations]: one each while the table of ``inputs`` = A · C rows stays small."""
    count = max(min(iterations, MOST_BINS, MOST_ENTRIES // inputs), 1)
    return (np.arange(iterations) * count // iterations).astype(np.int32)


def feature_nodes(features: Floats, allocations: int) -> tuple[Floats, ...]:
    """Ascending nodes per feature of ``features`` [n, F]: the values seen, or quantiles of them.

    Fewer of them where the table has many ``allocations``.
    """
    cells, limit = min(MOST_CELLS, MOST_INPUTS // allocations), MOST_NODES
    while features.shape[1] and limit > 1 and limit ** features.shape[1] > cells:
        limit -= 1
    return tuple(_nodes(column, limit) for column in features.T)


def inputs(layout: Layout, nodes: tuple[Floats, ...]) -> Floats:
    """Every allocation of the grid at every feature cell, [A · C, R + F], cells fastest."""
    cells = np.array(list(itertools.product(*nodes)), np.float64).reshape(
        max(math.prod(map(len, nodes)), 1), len(nodes)
    )
    allocations = np.repeat(layout.allocations, len(cells), axis=0)
    return np.hstack([allocations, np.tile(cells, (len(layout.allocations), 1))])


def _nodes(values: Floats, limit: int) -> Floats:
    seen = np.unique(values)
    if len(seen) <= limit:
        return seen
    return np.unique(np.quantile(seen, np.linspace(0, 1, limit)))
