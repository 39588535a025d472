"""A domain model laid out for one workload, and what each action leads to there."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from app.kinds.iterative.moves import Moves
from app.kinds.iterative.projection_tables import Array, Indices, ProjectionTables


class Projector(ProjectionTables):
    """What the model expects of the rest of a run, for any allocation and for each action."""

    @cached_property
    def moves(self) -> Moves:
        """What the actions lead to, by table look-up."""
        return Moves(self)

    @cached_property
    def believed(self) -> Projector | None:
        """Of the members of the belief, as feature cells: those of member k from k · C on; None: there is one model."""
        table = self.table.believed
        return None if table is None else Projector(self.layout, table, self.dtype)

    @cached_property
    def members(self) -> int:
        """Number K of models that are believed in."""
        return 1 if self.believed is None else self.believed.cells // self.cells

    @cached_property
    def _offsets(self) -> Array:
        """Of each member's logs against the expected ones, [A · C · I, K · M]."""
        members = np.asarray(self.table.members)
        return self._cast(np.moveaxis(members, (0, 1), (3, 4)).reshape(-1, members.shape[0] * members.shape[1]))

    def offsets(self, allocation: Indices, cell: Indices, iteration: Indices) -> Array:
        """Of each member's expected logs against ``log_mean``, [B, K, M]."""
        row = self.row(allocation, cell, self.bins)
        if self.bins > 1:
            row = row + self._bin[np.minimum(iteration, self.layout.iterations)]
        return self._offsets.take(row, axis=0).reshape(len(row), self.members, len(self.layout.metrics))
