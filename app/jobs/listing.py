"""SQL that reads jobs and their events for callers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session, defer

from app.database.base import UtcDateTime
from app.database.clock import Clock, database_time
from app.database.tables import Job, JobEvent, Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.jobs.states import WAITING


def find(session: Session, tenant: str, job_id: str) -> Job | None:
    """One job."""
    return session.scalar(select(Job).where(Job.tenant == tenant, Job.id == job_id))


def listed(
    session: Session, tenant: str, request: PageRequest, workload_id: str | None, state: str | None
) -> Slice[Job]:
    """A tenant's jobs, newest first; trials are told of by their training."""
    whole = select(Job).options(defer(Job.request))  # which may name thousands of executions
    statement = whole.where(Job.tenant == tenant, Job.type != "trial")
    if workload_id is not None:
        statement = statement.where(Job.workload_id == workload_id)
    if state is not None:
        statement = statement.where(Job.state.in_((state, WAITING) if state == "running" else (state,)))
    keys = [Job.created_at, Job.id]
    return paginate(session, statement, keys, request, descending=True, weigh=_weight)


def _weight(row: Job) -> int:
    return json_size([row.error, row.result])


def workload_names(session: Session, workload_ids: Sequence[str]) -> dict[str, str]:
    """Names of workloads by id."""
    rows = session.execute(select(Workload.id, Workload.name).where(Workload.id.in_(workload_ids)))
    return {row.id: row.name for row in rows}


def events(session: Session, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """Events after a sequence number, in order."""
    statement = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.sequence > after)
    return list(session.scalars(statement.order_by(JobEvent.sequence).limit(limit)))


def waiting_seconds(session: Session, clock: Clock = database_time) -> float:
    """For how long the first in line has waited since it last told anything; 0 where no job waits for a worker."""
    last = select(func.max(JobEvent.created_at).label("at")).join(Job, Job.id == JobEvent.job_id)
    told = last.where(Job.state == "queued").group_by(Job.id).subquery()
    since = session.scalar(select(func.min(told.c.at, type_=UtcDateTime())))
    return 0.0 if since is None else max(0.0, (clock(session) - since).total_seconds())


def counts(session: Session) -> dict[tuple[str, str], int]:
    """Number of jobs by type and state."""
    rows = session.execute(select(Job.type, Job.state, func.count()).group_by(Job.type, Job.state))
    return {(type_, state): number for type_, state, number in rows}
