"""SQL that changes jobs and their events; what only reads for callers stands in `listing`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, and_, func, or_, select, update
from sqlalchemy.orm import Session

from app.database.tables import Job, JobEvent
from app.jobs.states import WAITING


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
    return or_(Job.state == "queued", and_(Job.state == "running", expired(now)))


def expired(now: datetime) -> ColumnElement[bool]:
    """A job whose lease has not been renewed in time."""
    return or_(Job.lease_expires_at.is_(None), Job.lease_expires_at < now)


def add_event(session: Session, tenant: str, job_id: str, data: dict[str, Any], now: datetime) -> None:
    """Append an event. The job's row must have been written in this transaction: its lock keeps the order."""
    last = session.scalar(select(func.max(JobEvent.sequence)).where(JobEvent.job_id == job_id))
    session.add(JobEvent(tenant=tenant, job_id=job_id, sequence=(last or 0) + 1, data=data, created_at=now))


def running(session: Session) -> list[Job]:
    """All jobs that somebody holds or held."""
    return list(session.scalars(select(Job).where(Job.state == "running")))


def waiting(session: Session, announced_before: datetime, limit: int) -> list[Job]:
    """The jobs first in line that were announced before a time, or never."""
    first = select(Job.id).where(Job.state == "queued").order_by(Job.created_at, Job.id).limit(limit)
    due = or_(Job.enqueued_at.is_(None), Job.enqueued_at < announced_before)
    return list(session.scalars(select(Job).where(Job.id.in_(first), Job.state == "queued", due)))


def due(session: Session, now: datetime) -> list[Job]:
    """Jobs that wait for a time which has come."""
    return list(session.scalars(select(Job).where(*resting_until(now))))


def resting_until(now: datetime) -> list[ColumnElement[bool]]:
    """The conditions under which a job's time has come."""
    return [Job.state == WAITING, Job.not_before <= now]


def open_jobs(session: Session, tenant: str) -> int:
    """How many jobs of a tenant wait or run, trials aside; nobody makes one more until the transaction ends."""
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer at a time
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"jobs of {tenant}"))))
    states = ("queued", "running", WAITING)
    query = select(func.count(Job.id)).where(Job.tenant == tenant, Job.type != "trial", Job.state.in_(states))
    return session.scalar(query) or 0


def checkpoint(session: Session, job_id: str) -> bytes | None:
    """The last checkpoint of a job."""
    return session.scalar(select(Job.checkpoint).where(Job.id == job_id))
