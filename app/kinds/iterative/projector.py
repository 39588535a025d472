"""A domain model for one workload: expectations of the remaining run, and effects of actions."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from app.kinds.iterative.model import Point
from app.kinds.iterative.moves import Moves
from app.kinds.iterative.projection import Array, Indices, ProjectionTables, average_features
from app.kinds.iterative.spec import SECONDS

LARGEST_SLOWDOWN = 0.63  # that of the workloads on which the rule's constants were chosen


class Projector(ProjectionTables):
    """Expectations of the domain model for the remaining run, for any allocation and for each action."""

    @cached_property
    def moves(self) -> Moves:
        """Look-up tables of the effects of actions, made at the first use."""
        return Moves(self)

    @cached_property
    def believed(self) -> Projector | None:
        """Projector whose feature cell k · C + c is cell c of ensemble member k; None for a single model."""
        table = self.table.believed
        return None if table is None else Projector(self.layout, table, self.dtype)

    @cached_property
    def ahead(self) -> Projector:
        """Projector of future iterations without announced features; itself if no past execution changed any."""
        table = average_features(self.table)
        return self if table is self.table else Projector(self.layout, table, self.dtype)

    @cached_property
    def slowdown(self) -> float:
        """Mean natural logarithm of the factor by which the spec declares that runs become slower, at most
        ``LARGEST_SLOWDOWN``.

        It is 0 before samples, for factors that may be below 1, with a required probability, without targets, and with
        targets that aren't upper limits of the duration."""
        metrics = [metric for metric in self.layout.spec.metrics if metric.target is not None]
        shift = self.layout.spec.disturbances.pace_shift
        if shift is None or shift.factor[0] < 1 or not self.table.fitted or not metrics:
            return 0.0
        if any((one.name, one.goal, one.probability) != (SECONDS, "at_most", None) for one in metrics):
            return 0.0
        mean = shift.probability * (math.log(shift.factor[0]) + math.log(shift.factor[1])) / 2
        return min(mean, LARGEST_SLOWDOWN)

    @cached_property
    def members(self) -> int:
        """Number K of ensemble members; 1 for a single model."""
        return 1 if self.believed is None else self.believed.cells // self.cells

    @cached_property
    def _offsets(self) -> Array:
        """Log offsets of K members from the mean for M metrics, [A · C · I, K · M]."""
        members = np.asarray(self.table.members)
        return self._cast(np.moveaxis(members, (0, 1), (3, 4)).reshape(-1, members.shape[0] * members.shape[1]))

    def offsets(self, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Return the offsets of K members' expected natural logarithms of M metrics from ``log_mean``, [B, K, M].

        ``allocation`` [B] are rows of the grid, ``iteration`` [B] numbers from 0. Only for an ensemble (K > 1)."""
        offsets = self.look_up(self._offsets, allocation, point, iteration)
        return offsets.reshape(len(offsets), self.members, len(self.layout.metrics))
