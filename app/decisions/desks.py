"""The desk of each kind."""

from app.kinds.contract.engine import Desk
from app.kinds.iterative.decisions.engine import IterativeDesk
from app.kinds.workflow.decisions.engine import WorkflowDesk

DESKS: dict[str, Desk] = {"iterative": IterativeDesk(), "workflow": WorkflowDesk()}


def desk_of(kind: str) -> Desk:
    """The desk of a kind."""
    return DESKS[kind]
