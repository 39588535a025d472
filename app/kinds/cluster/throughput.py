"""Seconds of a training step by application, placement and batch: a belief, as tables of what members expect.

An application's members are models that its measurements can't tell apart. Between the points of a table the logarithm
is linear in the logarithms of GPUs, nodes and samples of a GPU; beyond it the nearest point answers. Of more samples of
a GPU than were measured that would be too little: there seconds grow in proportion to them, as on GPUs that are busy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats, Integers

NORMAL_90 = 1.6448536269514722  # standard normal quantile at 0.95
ONE_NODE, PACKED, SPREAD = range(3)
"""How GPUs are laid out in a table: on one node, on as few as they fill but two at least, on one node each."""
LAYOUTS = 3


class Throughput(NamedTuple):
    """M members, A applications, G numbers of GPUs, K samples of a GPU.

    Attributes:
        log_seconds: natural log of the median seconds of a step on GPUs of speed 1, [M, A, 3, G, K].
        gpus: ascending, from 1, [G].
        local: samples of a GPU, ascending, [A, K].
        bounds: of the log of one step about its median, 90 %, [A, 2].
        node: GPUs of a node, and nodes, for which the layouts were made, [2].
        largest: most GPUs on which each was measured, [A].
    """

    log_seconds: Floats
    gpus: Integers
    local: Floats
    bounds: Floats
    node: Integers
    largest: Integers


class Place(NamedTuple):
    """Where steps run, [n] each, or broadcast: GPUs, the nodes over which they are spread, samples of a GPU."""

    gpus: NDArray[np.number]
    nodes: NDArray[np.number]
    local: NDArray[np.number]


def layout_nodes(gpus: Integers, node: Integers) -> Integers:
    """Nodes of each layout, [3, G]; ``node``: GPUs of one, and how many there are."""
    packed = -(-gpus // node[0])
    several = np.minimum(2, gpus)
    spread = np.maximum(np.minimum(gpus, node[1]), several)
    return np.stack([np.ones_like(gpus), np.maximum(packed, several), np.maximum(spread, packed)])


def log_seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """What each member expects, [M, …]; ``application`` broadcasts with the parts of ``place``."""
    which, gpus, nodes, local = np.broadcast_arrays(np.asarray(application), *map(np.asarray, place))
    sizes = np.log(table.gpus)
    column, across = _between(np.log(np.maximum(gpus, 1)), sizes)
    row, along = _rows_between(np.log(np.maximum(local, 1e-9)), np.log(table.local), which)

    def at(layout: int) -> Floats:
        cells = table.log_seconds[:, :, layout]
        one, other = (
            (1 - along) * cells[:, which, more, row] + along * cells[:, which, more, row + 1]
            for more in (column, column + 1)
        )
        return np.asarray((1 - across) * one + across * other)

    packed, spread = layout_nodes(np.asarray(gpus, np.int64), table.node)[1:]
    more = np.log(np.maximum(nodes, 1) / packed) / np.log(np.maximum(spread / packed, 1 + 1e-9))
    share = np.clip(more, 0.0, 1.0)
    logs = np.where(nodes <= 1, at(ONE_NODE), (1 - share) * at(PACKED) + share * at(SPREAD))
    return logs + beyond(table, which, local)


def beyond(table: Throughput, application: Integers | int, local: NDArray[np.number]) -> Floats:
    """Log of samples of a GPU over the most that were measured; 0 up to these."""
    most = table.local[np.asarray(application), -1]
    return np.asarray(np.log(np.maximum(local, most)) - np.log(most), np.float64)


def interval(table: Throughput, application: Integers | int, place: Place) -> tuple[Floats, Floats, Floats]:
    """Median seconds of one step, and the bounds of its 90 % interval: members and measurements together.

    Beyond what was measured they are as far apart as what is expected there is from the nearest point.
    """
    logs = log_seconds(table, application, place)
    centre, further = logs.mean(axis=0), beyond(table, application, np.asarray(place.local))
    apart = np.hypot(NORMAL_90 * logs.std(axis=0), further)
    below, above = table.bounds[np.asarray(application)].T
    return np.exp(centre), np.exp(centre - np.hypot(below, apart)), np.exp(centre + np.hypot(above, apart))


def seconds(table: Throughput, application: Integers | int, place: Place) -> Floats:
    """Median seconds of one step, of all members together."""
    return np.exp(log_seconds(table, application, place).mean(axis=0))


def _between(values: Floats, points: Floats) -> tuple[Integers, Floats]:
    """The point at or below each value, and what share of the way to the next one it is; never beyond the points."""
    below = np.clip(np.searchsorted(points, values, side="right") - 1, 0, max(len(points) - 2, 0))
    return below, _share(values, points[below], points[np.minimum(below + 1, len(points) - 1)])


def _rows_between(values: Floats, points: Floats, which: Integers) -> tuple[Integers, Floats]:
    """As ``_between``, of points that differ by application, [A, K]."""
    own = points[which]  # […, K]
    below = np.clip((own <= values[..., None]).sum(axis=-1) - 1, 0, points.shape[1] - 2)
    low = np.take_along_axis(own, below[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(own, below[..., None] + 1, axis=-1)[..., 0]
    return below, _share(values, low, high)


def _share(values: Floats, low: Floats, high: Floats) -> Floats:
    return np.clip((values - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
