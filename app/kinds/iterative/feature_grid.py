"""Where features stand among a table's nodes: the corners of the box around them, for linear interpolation."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Indices = NDArray[np.integer]
TINY = 1e-30  # what sums are at least, so that they have a logarithm


class Point(NamedTuple):
    """B rows of features among the feature cells of a table, J corners each.

    Attributes:
        cells: [J, B].
        weights: of the corners, summing to 1, [J, B]; None where there is one corner.
    """

    cells: Indices
    weights: Array | None = None


def locate(nodes: Sequence[Array], features: Array) -> Point:
    """Where ``features`` [B, F] stand among ascending ``nodes`` by feature; beyond the outer ones: there.

    Distances are those of the logarithm where all nodes are greater than 0.
    """
    cells = np.zeros((1, len(features)), np.intp)
    weights = np.ones((1, len(features)))
    for column, known in enumerate(nodes):
        if len(known) == 1:
            continue
        place = _place(known, features[:, column])
        low = np.minimum(place.astype(np.intp), len(known) - 2)
        share = place - low
        cells = np.concatenate([cells * len(known) + low, cells * len(known) + low + 1])
        weights = np.concatenate([weights * (1 - share), weights * share])
    return Point(cells, weights if len(cells) > 1 else None)


def _place(nodes: Array, values: Array) -> Array:
    """Position among ``nodes`` as a fractional index, [B]."""
    inside, known = np.minimum(np.maximum(values, nodes[0]), nodes[-1]), nodes
    if nodes[0] > 0:
        inside, known = np.log(inside), np.log(nodes)
    return np.interp(inside, known, np.arange(len(nodes)))


def blended(values: Sequence[Array], weights: Array | None, *, logs: bool) -> Array:
    """``values`` at each corner, [..., B], weighted by ``weights`` [J, B]: as they are if ``logs``, else their logs."""
    if weights is None:
        return values[0]
    if logs:
        return weighted(values, weights)
    return np.exp(weighted([np.log(np.maximum(value, TINY)) for value in values], weights))


def weighted(values: Sequence[Array], weights: Array) -> Array:
    """Σ of ``values`` [..., B] times ``weights`` [J, B]."""
    total: Array = values[0] * weights[0]
    for value, weight in zip(values[1:], weights[1:], strict=True):
        total += value * weight
    return total
