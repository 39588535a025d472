"""The desk of each kind."""

from app.decisions.desk import Desk
from app.decisions.iterative.desk import IterativeDesk
from app.decisions.workflow.desk import WorkflowDesk

DESKS: dict[str, Desk] = {"iterative": IterativeDesk(), "workflow": WorkflowDesk()}


def desk_of(kind: str) -> Desk:
    """The desk of a kind."""
    return DESKS[kind]
