"""Ended runs as they were reported, for those who score an agent on what really happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.database.tables import Iteration, Run

LARGEST = 500


class Logged(NamedTuple):
    """What a run reported, in order, and what it was started with."""

    reports: Sequence[dict[str, Any]]
    start: Mapping[str, Any]


def logged(session: Session, workload_id: str, limit: int = LARGEST) -> list[Logged]:
    """The workload's last ended runs with reports, newest first."""
    ended = select(Run.id, Run.start).where(
        Run.workload_id == workload_id, Run.state != "running", Run.next_iteration > 0
    )
    found = []
    for run, start in session.execute(ended.order_by(Run.created_at.desc(), Run.id).limit(limit)).all():
        reports = select(Iteration.report).where(Iteration.run_id == run).order_by(Iteration.iteration)
        found.append(Logged(list(session.scalars(reports)), start))
    return found
