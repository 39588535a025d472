"""Where an exported table has its nodes: iteration bins, feature nodes, and all their inputs."""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.feature_grid import locate, weighted
from app.kinds.iterative.layout import Layout
from workers.estimators.base import Estimator, Floats
from workers.estimators.replicates import distinct
from workers.estimators.selection import Reading, directly

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

    Fewer of them, of the features with most first, where the table has many ``allocations`` or features.
    """
    cells = min(MOST_CELLS, MOST_INPUTS // allocations)
    counts = [min(len(np.unique(column)), MOST_NODES) for column in features.T]
    while max(counts, default=1) > 1 and math.prod(counts) > cells:
        counts[counts.index(max(counts))] -= 1
    return tuple(_nodes(column, count) for column, count in zip(features.T, counts, strict=True))


def on_nodes(layout: Layout) -> Reading:
    """Reads a family as the table does that is exported after the rows it learned from."""
    resources, allocations = len(layout.resources), len(layout.allocations)

    def read(fitted: Estimator, learned: Floats, X: Floats) -> Floats:
        nodes = feature_nodes(learned[:, resources:], allocations)
        cells, weights = locate(nodes, X[:, resources:])
        places = np.array(list(itertools.product(*nodes)))
        corners = np.concatenate([np.hstack([X[:, :resources], places[cell]]) for cell in cells])
        first, which = distinct(corners)
        logs = directly(fitted, learned, corners[first])[which].reshape(len(cells), -1)
        return logs[0] if weights is None else weighted(list(logs), weights)

    return read if layout.features else directly


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
