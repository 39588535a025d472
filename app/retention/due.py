"""What is due: for each noun, the rows that are older than they are kept, but for what something live rests on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from app.database.tables import Agent, DomainModel, Evaluation, Job, JobEvent, Run
from app.retention import held
from app.retention.schemas import Retention


class Ages(NamedTuple):
    """Before when each noun's rows are due; None: never."""

    iterations: datetime | None
    runs: datetime | None
    jobs: datetime | None
    events: datetime | None
    evaluations: datetime | None
    artifacts: datetime | None


def ages(retention: Retention, now: datetime) -> Ages:
    """What a retention means now."""
    days = {name: getattr(retention, f"{name}_days") for name in Ages._fields}
    return Ages(**{name: None if age is None else now - timedelta(days=age) for name, age in days.items()})


def first_kept() -> ColumnElement[int]:
    """The first of a run's iterations that is stored."""
    return func.coalesce(Run.kept_from, 0)


def ended_runs(session: Session, workload_id: str, before: datetime) -> list[ColumnElement[bool]]:
    """Runs that ended before a time."""
    needed = held.needed_runs(session, workload_id)
    return [Run.workload_id == workload_id, Run.state != held.RUNNING, Run.finished_at < before, Run.id.not_in(needed)]


def ended_jobs(session: Session, workload_id: str, before: datetime) -> list[ColumnElement[bool]]:
    """Jobs that ended before a time, trials among them."""
    needed = held.needed_jobs(session, workload_id)
    return [
        Job.workload_id == workload_id,
        Job.state.not_in(held.OPEN_JOB),
        Job.finished_at < before,
        Job.id.not_in(needed),
    ]


def superseded(session: Session, workload_id: str, table: type[Agent | DomainModel], before: datetime) -> list[int]:
    """Versions that came before a time, that nothing holds, and that are not the newest."""
    reasons = held.agents(session, workload_id) if table is Agent else held.models(session, workload_id)
    newest = select(func.max(table.version)).where(table.workload_id == workload_id).scalar_subquery()
    old = select(table.version).where(table.workload_id == workload_id, table.created_at < before)
    found = session.scalars(old.where(table.version < newest).order_by(table.version))
    return [version for version in found if version not in reasons]


def counts(session: Session, workload_id: str, due: Ages) -> Mapping[str, int]:
    """How many rows of each noun are due."""
    return {
        "iterations": _iterations(session, workload_id, due),
        "runs": 0 if due.runs is None else _count(session, Run.id, ended_runs(session, workload_id, due.runs)),
        "events": _events(session, workload_id, due),
        "jobs": _jobs(session, workload_id, due.jobs),
        "evaluations": _evaluations(session, workload_id, due.evaluations),
        **_artifacts(session, workload_id, due.artifacts),
    }


def _count(session: Session, column: Any, conditions: list[ColumnElement[bool]]) -> int:
    return session.scalar(select(func.count(column)).where(*conditions)) or 0


def _iterations(session: Session, workload_id: str, due: Ages) -> int:
    """Of runs that go, all that are left; of others, all but the last one."""
    found = 0
    if due.runs is not None:
        going = ended_runs(session, workload_id, due.runs)
        found += session.scalar(select(func.sum(Run.next_iteration - first_kept())).where(*going)) or 0
    if due.iterations is not None:
        old = ended_runs(session, workload_id, due.iterations)
        if due.runs is not None:
            old.append(Run.finished_at >= due.runs)
        left = Run.next_iteration - 1 - first_kept()
        found += session.scalar(select(func.sum(left)).where(*old, left > 0)) or 0
    return found


def _jobs(session: Session, workload_id: str, before: datetime | None) -> int:
    if before is None:
        return 0
    return _count(session, Job.id, [*ended_jobs(session, workload_id, before), Job.type != "trial"])


def _events(session: Session, workload_id: str, due: Ages) -> int:
    """All but the last one of each job."""
    if due.events is None:
        return 0
    jobs = select(Job.id).where(*ended_jobs(session, workload_id, due.events))
    statement = select(func.count() - func.count(JobEvent.job_id.distinct())).where(JobEvent.job_id.in_(jobs))
    return session.scalar(statement) or 0


def _evaluations(session: Session, workload_id: str, before: datetime | None) -> int:
    old = [] if before is None else [Evaluation.workload_id == workload_id, Evaluation.created_at < before]
    return _count(session, Evaluation.id, old) if old else 0


def _artifacts(session: Session, workload_id: str, before: datetime | None) -> Mapping[str, int]:
    if before is None:
        return {"agents": 0, "models": 0}
    return {
        "agents": len(superseded(session, workload_id, Agent, before)),
        "models": len(superseded(session, workload_id, DomainModel, before)),
    }
