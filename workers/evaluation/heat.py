"""A policy's heat map: what it does, by where it is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Situation
from workers.evaluation.problem import Axis, Problem


class HeatMap:
    """Sums and counts over the bins of a problem's axes, [2, Y, X]; values beyond the axes go to the outermost bins."""

    def __init__(self, problem: Problem) -> None:
        self.problem, axes = problem, problem.heat_map_axes
        self.sums: NDArray[np.float64] = np.zeros((2, len(axes.y.edges) - 1, len(axes.x.edges) - 1))

    def watch(self, situation: Situation, action: NDArray[np.integer], going: NDArray[np.bool_]) -> None:
        """Add the policy's actions in B situations to the bins; values that are NaN are none."""
        x, y, value = self.problem.drawn(situation, action)
        shown = going & ~np.isnan(value)
        x, y, value = x[shown], y[shown], value[shown]
        place = _bin(self.problem.heat_map_axes.y, y), _bin(self.problem.heat_map_axes.x, x)
        np.add.at(self.sums[0], place, value)
        np.add.at(self.sums[1], place, 1)


def _bin(axis: Axis, values: NDArray[np.floating]) -> NDArray[np.intp]:
    return np.searchsorted(axis.edges[1:-1], values, side="right")


def shown(problem: Problem, sums: NDArray[np.float64]) -> dict[str, Any]:
    """The heat map of ``sums`` [2, Y, X] as plain values."""
    axes, (total, count) = problem.heat_map_axes, sums
    mean = [[float(t / c) if c else None for t, c in zip(*row, strict=True)] for row in zip(total, count, strict=True)]
    return {
        "x": {"name": axes.x.name, "edges": list(axes.x.edges)},
        "y": {"name": axes.y.name, "edges": list(axes.y.edges)},
        "value": {"name": axes.value, "mean": mean},
        "count": [[int(c) for c in row] for row in count],
    }
