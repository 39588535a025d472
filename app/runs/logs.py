"""Ended runs as logs, for those who score an agent on what really happened."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.tables import Iteration, Run
from app.kinds.contract.inputs import InvalidInput
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.log import Log, from_reports

LARGEST = 500


def logged(session: Session, workload_id: str, layout: Layout, limit: int = LARGEST) -> list[Log]:
    """The workload's last ended runs with reports, newest first; those of another layout are left out."""
    ended = select(Run.id, Run.start).where(
        Run.workload_id == workload_id, Run.state != "running", Run.next_iteration > 0
    )
    found = []
    for run, start in session.execute(ended.order_by(Run.created_at.desc(), Run.id).limit(limit)).all():
        reports = select(Iteration.report).where(Iteration.run_id == run).order_by(Iteration.iteration)
        log = _log(layout, list(session.scalars(reports)), start.get("targets", {}))
        if log is not None:
            found.append(log)
    return found


def _log(layout: Layout, reports: list[dict[str, object]], targets: dict[str, float]) -> Log | None:
    try:
        return from_reports(layout, reports, targets)
    except InvalidInput:  # the spec has changed since
        return None
