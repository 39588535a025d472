"""A domain model laid out for one workload, and what each action leads to there."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from app.kinds.iterative.model import Point
from app.kinds.iterative.moves import Moves
from app.kinds.iterative.projection import Array, Indices, ProjectionTables, foreseen


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
    def ahead(self) -> Projector:
        """Of iterations to come whose features nobody has announced; itself where no past execution changed any."""
        table = foreseen(self.table)
        return self if table is self.table else Projector(self.layout, table, self.dtype)

    @cached_property
    def members(self) -> int:
        """Number K of models that are believed in."""
        return 1 if self.believed is None else self.believed.cells // self.cells

    @cached_property
    def _offsets(self) -> Array:
        """Of each member's logs against the expected ones, [A · C · I, K · M]."""
        members = np.asarray(self.table.members)
        return self._cast(np.moveaxis(members, (0, 1), (3, 4)).reshape(-1, members.shape[0] * members.shape[1]))

    def offsets(self, allocation: Indices, point: Point, iteration: Indices) -> Array:
        """Of each member's expected logs against ``log_mean``, [B, K, M]."""
        found = self.look_up(self._offsets, allocation, point, iteration)
        return found.reshape(len(found), self.members, len(self.layout.metrics))
