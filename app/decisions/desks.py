"""The desk of each kind."""

from app.decisions.desk import Desk
from app.decisions.iterative.desk import IterativeDesk

DESKS: dict[str, Desk] = {"iterative": IterativeDesk()}


def desk_of(kind: str) -> Desk:
    """The desk of a kind."""
    return DESKS[kind]
