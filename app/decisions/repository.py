"""SQL queries on stored decisions, which are rows of the iterations that they answered."""

from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.tables import Iteration, Run


class StoredDecision(NamedTuple):
    """A stored decision (None: not stored), and the numbers of the next and of the first stored iteration."""

    decision: dict[str, Any] | None
    following: int
    kept_from: int = 0


def of_run(session: Session, tenant: str, run: str, iteration: int | None) -> StoredDecision | None:
    """The decision after iteration ``iteration``, None: the newest of the run; None if there is no such run."""
    number = Run.next_iteration - 1 if iteration is None else iteration
    query = (
        select(Run.next_iteration, Run.decision, Iteration, Run.kept_from)
        .outerjoin(Iteration, (Iteration.run_id == Run.id) & (Iteration.iteration == number))
        .where(Run.id == run, Run.tenant == tenant)
    )
    found = session.execute(query).one_or_none()
    if found is None:
        return None
    following, initial, reported, kept_from = found
    decision = None if reported is None else reported.decision
    if iteration is None and decision is None:
        decision = initial
    return StoredDecision(decision, following, kept_from or 0)
