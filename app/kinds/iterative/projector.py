"""A domain model laid out for one workload, and what each action leads to there."""

from functools import cached_property

from app.kinds.iterative.moves import Moves
from app.kinds.iterative.projection_tables import ProjectionTables


class Projector(ProjectionTables):
    """What the model expects of the rest of a run, for any allocation and for each action."""

    @cached_property
    def moves(self) -> Moves:
        """What the actions lead to, by table look-up."""
        return Moves(self)
