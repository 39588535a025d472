"""Actions: the allocations they lead to, their pause, and the expected remaining sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point, interpolate
from app.kinds.iterative.projection import ProjectionTables

Array = NDArray[Any]
Indices = NDArray[np.integer]
LARGEST_TABLE = 1_000_000  # entries of one table over actions; beyond it the goals' indices are computed every time


class GridPosition(NamedTuple):
    """Position of B runs: row ``here`` of the allocation grid, [B]; ``point`` of their features in the feature grid;
    number of the next ``iteration`` from 0, [B]; and ``levels`` of R resources, [B, R]."""

    here: Indices
    point: Point
    iteration: Indices
    levels: Indices


class Moves:
    """The N actions of a layout from the positions of B runs, with precomputed tables.

    Attributes:
        pause: seconds that the action's change takes, [N, 1].
        change: share of the largest possible movement in a run, [N, 1].
        steps: change of the row in the allocation grid, [N, 1].
    """

    def __init__(self, projector: ProjectionTables) -> None:
        self._projector, layout = projector, projector.layout
        dtype, deltas = projector.dtype, layout.deltas
        self.pause: Array = ((deltas != 0) @ projector.change_seconds)[:, None]
        self.change: Array = projector.share_moved(np.abs(deltas).sum(axis=1))[:, None].astype(dtype)
        self._units = np.column_stack([np.ones(len(deltas)), deltas * projector.steps]).astype(dtype)
        self.steps = (deltas @ layout.strides).astype(np.intp)[:, None]
        grid, actions = len(layout.allocations), len(layout.deltas)
        self._barrier = self._blocked_moves(projector.grid_levels) if grid * actions <= LARGEST_TABLE else None
        entries = grid * actions * projector.cells * projector.rows
        self._tabled = entries <= LARGEST_TABLE and projector.stride == 1
        self._tables: dict[tuple[int, bool], Array] = {}

    def barrier(self, position: GridPosition) -> Array:
        """Return 0 where an action is legal and −∞ where it isn't, [N, B]."""
        if self._barrier is None:
            return self._blocked_moves(position.levels)
        return self._barrier.take(position.here, axis=1)

    def remaining(self, metric: int, position: GridPosition, *, logs: bool = False) -> Array:
        """Return Σ of the expected ``metric`` in its unit, or of its natural logarithm if ``logs``, from the next
        iteration to the end, if each action's allocation is held, [N, B]; illegal actions stay."""
        if not self._tabled:
            return self._remaining(metric, position, logs)
        table = self._tables.get((metric, logs))
        if table is None:
            table = self._tables[metric, logs] = self._remaining(metric, self._everywhere(), logs)
        projector = self._projector
        rows = [projector.row(position.here, cell, projector.rows) for cell in position.point.cells]
        results = [table.take(row + position.iteration, axis=1) for row in rows]
        return interpolate(results, position.point.weights, logs=logs)

    def rate(self, levels: Indices, unit_values: Array) -> Array:
        """Return Σ over R resources of each action's allocation, from ``levels`` [B, R], times ``unit_values`` [R, B],
        [N, B]; illegal actions aren't clipped."""
        units = np.empty_like(unit_values, self._projector.dtype, "C", shape=(len(unit_values) + 1, len(levels)))
        units[1:] = unit_values
        (unit_values * self._projector.units(levels).T).sum(axis=0, out=units[0])
        return self._units @ units

    def goals(self, position: GridPosition) -> Indices:
        """Return the row of the allocation grid that each action leads to, [N, B]; illegal actions stay."""
        goals: Indices = position.here + self.steps * self._projector.layout.legal(position.levels)
        return goals

    def _blocked_moves(self, levels: Indices) -> Array:
        legal = self._projector.layout.legal(levels)
        return np.where(legal, 0, -np.inf).astype(self._projector.dtype)

    def _remaining(self, metric: int, position: GridPosition, logs: bool) -> Array:
        read = self._projector.remaining_log if logs else self._projector.remaining
        return read(metric, self.goals(position), position.point, position.iteration)

    def _everywhere(self) -> GridPosition:
        projector = self._projector
        shape = (len(projector.grid_levels), projector.cells, projector.rows)
        here, cell, row = (part.reshape(-1) for part in np.indices(shape))
        return GridPosition(here, Point(cell[None]), row, projector.grid_levels[here])


# Effect of actions on allocations.


def step(layout: Layout, levels: NDArray[np.integer], action: NDArray[np.integer]) -> NDArray[np.int16]:
    """Return the levels of R resources after ``action`` [B] from ``levels`` [B, R], clipped to the bounds, [B, R]."""
    after = layout.deltas.take(action, axis=0)
    after += levels
    np.minimum(np.maximum(after, 0, out=after), layout.tops, out=after)
    return after.astype(np.int16)


def action_towards(layout: Layout, levels: NDArray[np.integer], goal: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the action [B] that moves ``levels`` [B, R] closest to ``goal`` [B, R], for B runs with R resources."""
    reach = np.array([r.max_steps for r in layout.spec.resources])
    moves = np.clip(goal - levels, -reach, reach) + reach
    action = np.zeros(len(levels), np.intp)
    for resource, most in enumerate(reach):
        action = action * (2 * most + 1) + moves[:, resource]
    return action
