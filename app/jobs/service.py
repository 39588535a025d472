"""Operations on jobs for callers: create, read, list, follow, cancel, delete; their API schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field
from sqlalchemy.orm import Session

from app import queue
from app.audit import service as audit
from app.database.engine import Database, after_commit
from app.database.leases import Clock, database_time
from app.database.tables import Job, JobEvent, Workload
from app.errors import Conflict, NotFound, TooManyRequests
from app.http.caller import current_caller, current_quotas
from app.http.idempotency import Record, no_record
from app.http.pagination import PageRequest, Slice
from app.jobs import repository
from app.jobs.repository import TASKS, WAITING, cancelled_columns
from app.kinds.contract.inputs import stored
from app.retention import holds
from app.telemetry.logs import current_traceparent
from app.workloads import members

# API schemas of jobs.


JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
JobType = Literal["fit", "train", "trial", "evaluate"]
FINAL_STATES = ("succeeded", "failed", "cancelled")
RETRIED = ("failed", "cancelled")
"""States of jobs that can be retried."""
LOWEST_PRIORITY = -10
Priority = Annotated[
    int,
    Field(
        ge=LOWEST_PRIORITY,
        le=10,
        description="A tenant's waiting jobs start in order of priority, highest first; the order among tenants "
        "ignores it.",
    ),
]


class JobRead(BaseModel):
    """A job: its type, state and progress, and its result or error once it has ended."""

    id: str
    type: JobType
    workload: str = Field(description="Name of the workload.")
    state: JobState
    priority: Priority
    progress: float = Field(ge=0, le=1)
    eta_seconds: float | None = Field(description="Estimated seconds until it is done.")
    attempts: int = Field(
        description="Number of the current or last attempt, from 1; above 1 if workers were lost; 0 before the first."
    )
    error: dict[str, Any] | None = Field(description="Problem document of a failed job.")
    result: dict[str, Any] | None = Field(description="`{model: version}`, `{agent: version}` or `{evaluation: id}`.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None = Field(description="When it resumes, if it waits for its next window.")


# Jobs as callers see them; workers' operations are in `lease`.


EVENTS_AT_ONCE = 200
PRIORITY = "priority"
QUOTA_SECONDS = 30
"""Retry-After of a tenant that has reached its quota, in seconds."""


def create(
    session: Session,
    *,
    job_type: JobType,
    workload_id: str,
    request: dict[str, Any],
    tenant: str,
    clock: Clock = database_time,
    retry_of: str | None = None,
) -> Job:
    """Insert a job in the caller's transaction; workers are woken up after its commit.

    A `priority` in the request becomes the job's, so that lists needn't read requests. ``retry_of``: id of the job that
    it repeats.
    Raises TooManyRequests if the tenant's quota of open jobs is reached.
    """
    most = current_quotas().jobs
    if most and repository.open_jobs(session, tenant) >= most:
        raise TooManyRequests(
            f"tenant {tenant} has {most} queued and running jobs, the maximum; retry when one has ended",
            "jobs",
            retry_after=QUOTA_SECONDS,
        )
    now = clock(session)
    job = Job(
        tenant=tenant,
        type=job_type,
        workload_id=workload_id,
        request={name: value for name, value in request.items() if name != PRIORITY},
        priority=request.get(PRIORITY, 0),
        enqueued_at=now,
        traceparent=current_traceparent(),
    )
    session.add(job)
    session.flush()
    repository.add_event(session, tenant, job.id, _event("queued", 0.0), now)
    if current_caller.get() is not None:  # jobs that the service starts by itself are in its log
        detail = {"type": job_type} | ({} if retry_of is None else {"retry_of": retry_of})
        audit.add(session, tenant, "job.create", f"job {job.id}", detail)
    job_id = job.id
    after_commit(session, lambda: queue.enqueue(TASKS[job_type], job_id))
    return job


def _event(state: str, progress: float, **more: Any) -> dict[str, Any]:
    return {"state": state, "progress": progress, **more}


def to_response(job: Job, workload: str) -> JobRead:
    """API representation of a job; `workload` is its workload's name; raises BrokenRow if the row is invalid."""
    with stored(f"job {job.id}"):
        # Number of the present or last attempt, from 1; a waiting job is still in the one that released it
        return JobRead(
            id=job.id,
            type=cast("JobType", job.type),
            workload=workload,
            state="running" if job.state == WAITING else cast("JobState", job.state),
            priority=job.priority,
            progress=job.progress,
            eta_seconds=job.eta_seconds,
            attempts=max(job.attempts + (job.state == WAITING), int(job.started_at is not None)),
            error=job.error,
            result=job.result,
            created_at=job.created_at,
            started_at=job.started_at,
            finished_at=job.finished_at,
            not_before=job.not_before,
        )


def require(session: Session, tenant: str, job_id: str) -> Job:
    """A tenant's job by id; raises NotFound if there is none."""
    job = repository.find(session, tenant, job_id)
    if job is None:
        raise NotFound(f"no job {job_id!r}")
    return job


def _to_response(session: Session, job: Job) -> JobRead:
    name = repository.workload_names(session, [job.workload_id]).get(job.workload_id)
    if name is None:  # its workload was deleted between the two statements
        raise NotFound(f"no job {job.id!r}")
    return to_response(job, name)


def get(database: Database, tenant: str, job_id: str) -> JobRead:
    """API representation of a tenant's job by id; raises NotFound if there is none, BrokenRow if its row is invalid."""
    with database.reading() as session:
        return _to_response(session, require(session, tenant, job_id))


def list_jobs(
    database: Database,
    tenant: str,
    request: PageRequest,
    workload: str | None = None,
    state: str | None = None,
    job_type: str | None = None,
    search: str | None = None,
    *,
    descending: bool = True,
) -> tuple[Slice[Job], dict[str, str]]:
    """One page of jobs, newest first or, not ``descending``, oldest first; and the names of their workloads by id.

    ``workload`` (name or id), ``state``, type and ``search``, the first characters of the job's id or of its workload's
    name, filter the list; None or empty: any. Raises NotFound if there is no such workload, Invalid for a foreign
    cursor.
    """
    with database.reading() as session:
        workload_id = None
        if workload is not None:
            result = members.find(session, tenant, workload)
            if result is None:
                raise NotFound(f"no workload {workload!r}")
            workload_id = result.id
        chosen = repository.Filter(workload_id, state, job_type, search or None)
        found_jobs = repository.list_jobs(session, tenant, request, chosen, descending=descending)
        names = repository.workload_names(session, [job.workload_id for job in found_jobs.rows])
        return replace(found_jobs, rows=[job for job in found_jobs.rows if job.workload_id in names]), names


PREPARED: dict[str, tuple[type[BaseModel], Callable[[Session, Workload, Any], dict[str, Any]]]] = {}
"""By type of jobs, filled by their services: the model of requests, and what checks one of a workload whose row is
locked, and returns it as it is stored."""


def retry(database: Database, tenant: str, job_id: str, record: Record = no_record) -> JobRead:
    """Queue a job with the request of one that failed or was cancelled, which stays as it is.

    Raises:
        BrokenRow: its stored request is invalid.
        Conflict: it has not ended or has succeeded, or it is a trial, which its training starts.
        Conflict, Invalid, NotFound: the request would be refused now, as by the operation that queued the job.
        NotFound: there is no such job.
        TooManyRequests: the tenant's quota of open jobs is reached.
    """
    with database.session() as session:
        job = require(session, tenant, job_id)
        if job.state not in RETRIED or job.type == "trial":
            stands = "is a trial; retry its training" if job.type == "trial" else f"is {job.state}"
            raise Conflict(f"job {job_id} {stands}; only a failed or cancelled job can be retried")
        workload = session.get(Workload, job.workload_id, with_for_update=True)
        if workload is None:
            raise NotFound(f"no job {job_id!r}")
        model, checked = PREPARED[job.type]
        with stored(f"job {job_id}"):
            requested = model.model_validate(job.request)
        request = {**checked(session, workload, requested), PRIORITY: job.priority}
        job_type = cast("JobType", job.type)
        result = create(
            session, job_type=job_type, workload_id=workload.id, request=request, tenant=tenant, retry_of=job_id
        )
        answer = to_response(result, workload.name)
        record(session, answer)
        return answer


def cancel(database: Database, tenant: str, job_id: str) -> JobRead:
    """Cancel a job: at once unless it is running; a running one stops at its next chunk, or is ended after 4 s.

    Repeating it has no effect.

    Raises:
        Conflict: it has succeeded or failed.
        NotFound: there is no such job.
    """
    with database.session() as session:
        repository.hold_parent(session, job_id)
        now = database_time(session)
        job = require(session, tenant, job_id)
        session.refresh(job, with_for_update=True)
        if job.state in ("succeeded", "failed"):
            raise Conflict(f"job {job_id} has {job.state}; only queued or running jobs can be cancelled")
        if repository.change(session, job_id, [Job.state.in_(("queued", WAITING))], **cancelled_columns(now)):
            repository.add_event(session, tenant, job_id, _event("cancelled", job.progress), now)
            repository.settle(session, job_id, now)
        elif job.state != "cancelled":
            repository.change(session, job_id, [Job.state == "running"], cancel_requested=True)
        if job.state != "cancelled":
            audit.add(session, tenant, "job.cancel", f"job {job_id}")
        session.expire_all()
        return _to_response(session, require(session, tenant, job_id))


def delete(database: Database, tenant: str, job_id: str) -> None:
    """Delete a job that has ended, with its events and trials.

    Raises:
        Conflict: it has not ended, or something active depends on it.
        NotFound: there is no such job.
    """
    with database.session() as session:
        repository.hold_parent(session, job_id)
        result = require(session, tenant, job_id)
        session.refresh(result, with_for_update=True)
        holds.refuse(f"job {job_id}", holds.job(session, result))
        repository.remove(session, [job_id])
        audit.add(session, tenant, "job.delete", f"job {job_id}")


def events(database: Database, tenant: str, job_id: str, after: int) -> tuple[Sequence[JobEvent], bool]:
    """Up to 200 events after number ``after``, and whether they are the last; raises NotFound without such a job."""
    with database.reading() as session:
        state = require(session, tenant, job_id).state
        events = repository.events(session, job_id, after, EVENTS_AT_ONCE)
    return events, state in FINAL_STATES and len(events) < EVENTS_AT_ONCE
