"""SQL about jobs and their events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, and_, func, or_, select, update
from sqlalchemy.orm import Session

from app.database.tables import Job, JobEvent, Workload
from app.pagination import PageRequest, Slice, paginate


def find(session: Session, tenant: str, job_id: str) -> Job | None:
    """One job."""
    return session.scalar(select(Job).where(Job.tenant == tenant, Job.id == job_id))


def listed(
    session: Session, tenant: str, request: PageRequest, workload_id: str | None, state: str | None
) -> Slice[Job]:
    """A tenant's jobs, newest first."""
    statement = select(Job).where(Job.tenant == tenant)
    if workload_id is not None:
        statement = statement.where(Job.workload_id == workload_id)
    if state is not None:
        statement = statement.where(Job.state == state)
    return paginate(session, statement, [Job.created_at, Job.id], request, descending=True)


def workload_names(session: Session, workload_ids: Sequence[str]) -> dict[str, str]:
    """Names of workloads by id."""
    rows = session.execute(select(Workload.id, Workload.name).where(Workload.id.in_(workload_ids)))
    return {row.id: row.name for row in rows}


def change(session: Session, job_id: str, conditions: Sequence[ColumnElement[bool]], **values: Any) -> bool:
    """Update a job if the conditions hold; tells whether they did."""
    statement = update(Job).where(Job.id == job_id, *conditions).values(**values)
    statement = statement.execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def held(owner: str, fence: int) -> list[ColumnElement[bool]]:
    """The conditions under which a worker still holds the lease that it was given."""
    return [Job.state == "running", Job.owner == owner, Job.fence == fence]


def free(now: datetime) -> ColumnElement[bool]:
    """A job that a worker may take: queued, or running under an expired lease."""
    return or_(Job.state == "queued", and_(Job.state == "running", Job.lease_expires_at < now))


def add_event(session: Session, tenant: str, job_id: str, data: dict[str, Any], now: datetime) -> None:
    """Append an event. The job's row must have been written in this transaction: its lock keeps the order."""
    last = session.scalar(select(func.max(JobEvent.sequence)).where(JobEvent.job_id == job_id))
    session.add(JobEvent(tenant=tenant, job_id=job_id, sequence=(last or 0) + 1, data=data, created_at=now))


def events(session: Session, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """Events after a sequence number, in order."""
    statement = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.sequence > after)
    return list(session.scalars(statement.order_by(JobEvent.sequence).limit(limit)))


def running(session: Session) -> list[Job]:
    """All jobs that somebody holds or held."""
    return list(session.scalars(select(Job).where(Job.state == "running")))


def waiting(session: Session, announced_before: datetime, limit: int) -> list[Job]:
    """The jobs first in line that were announced before a time, or never."""
    first = select(Job.id).where(Job.state == "queued").order_by(Job.created_at, Job.id).limit(limit)
    due = or_(Job.enqueued_at.is_(None), Job.enqueued_at < announced_before)
    return list(session.scalars(select(Job).where(Job.id.in_(first), Job.state == "queued", due)))


def counts(session: Session) -> dict[tuple[str, str], int]:
    """Number of jobs by type and state."""
    rows = session.execute(select(Job.type, Job.state, func.count()).group_by(Job.type, Job.state))
    return {(type_, state): number for type_, state, number in rows}


def checkpoint(session: Session, job_id: str) -> bytes | None:
    """The last checkpoint of a job."""
    return session.scalar(select(Job.checkpoint).where(Job.id == job_id))
