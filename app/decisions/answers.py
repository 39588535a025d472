"""A decision and a report of whatever kind, for the schema."""

from typing import Annotated, Any

from pydantic import Discriminator, Tag

from app.decisions.schemas import Decision
from app.kinds.iterative.decisions.report import IterationReport
from app.kinds.registry import DEFAULT
from app.kinds.workflow.decisions.schemas import QueueDecision
from app.kinds.workflow.queue.report import QueueReport


def _kind(decision: Any) -> str:
    """The kind that a decision names; those of the first name none."""
    found = decision.get("kind", DEFAULT) if isinstance(decision, dict) else getattr(decision, "kind", DEFAULT)
    return str(found)


AnyDecision = Annotated[
    Annotated[Decision, Tag("iterative")] | Annotated[QueueDecision, Tag("workflow")], Discriminator(_kind)
]
AnyReport = IterationReport | QueueReport
