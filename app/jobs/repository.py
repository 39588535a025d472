"""SQL queries on jobs, their events, and trainings with their trials."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, cast

from sqlalchemy import ColumnElement, CursorResult, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session, defer

from app import queue
from app.database.base import UtcDateTime
from app.database.engine import after_commit
from app.database.leases import Clock, database_time
from app.database.tables import Job, JobEvent, Trial, Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate
from app.workloads.search import found_by

# States and types of jobs, and the column values of each state.


TASKS: dict[str, str] = {
    "fit": queue.FIT,
    "train": queue.TRAIN,
    "trial": queue.TRIAL,
    "evaluate": queue.EVALUATE,
}
"""Name of the worker task for each type of job."""

WAITING = "waiting"
"""State of a job without a lease: a training that waits for its trials, a trial that waits for a comparison, an online
training that waits for its next window. The API shows it as running.
"""

OPEN = ("queued", "running", WAITING)
FINAL = ("succeeded", "failed", "cancelled")


def ended_columns(now: datetime) -> dict[str, Any]:
    """Column values of an ended job: without lease, checkpoint and estimate."""
    nobody = {"owner": None, "lease_expires_at": None, "eta_seconds": None, "not_before": None}
    return {"finished_at": now, "checkpoint": None, **nobody}


def cancelled_columns(now: datetime) -> dict[str, Any]:
    """Column values of a cancelled job, which ended at ``now``: without lease, checkpoint and estimate."""
    return {"state": "cancelled", "cancel_requested": True, **ended_columns(now)}


def waiting() -> dict[str, Any]:
    """Column values of a job that its worker released until other jobs have ended; this doesn't count as an attempt."""
    return {
        "state": WAITING,
        "owner": None,
        "lease_expires_at": None,
        "fence": Job.fence + 1,
        "attempts": Job.attempts - 1,
    }


def requeued_columns(announced: datetime | None) -> dict[str, Any]:
    """Column values of a job that returns to the queue; `announced`: when it is sent to the broker, None: not now."""
    return {
        "state": "queued",
        "owner": None,
        "lease_expires_at": None,
        "eta_seconds": None,
        "fence": Job.fence + 1,
        "enqueued_at": announced,
        "not_before": None,
    }


# SQL that changes jobs and their events.


def change(session: Session, job_id: str, conditions: Sequence[ColumnElement[bool]], **values: Any) -> bool:
    """Update a job if the conditions hold; False if they don't."""
    statement = update(Job).where(Job.id == job_id, *conditions).values(**values)
    statement = statement.execution_options(synchronize_session=False)
    return cast("CursorResult[Any]", session.execute(statement)).rowcount == 1


def lease_conditions(owner: str, fence: int) -> list[ColumnElement[bool]]:
    """SQL conditions: the lease with this owner and fence token is held."""
    return [Job.state == "running", Job.owner == owner, Job.fence == fence]


def free(now: datetime) -> ColumnElement[bool]:
    """SQL condition: the job can be leased, as it is queued or its lease has expired."""
    return or_(Job.state == "queued", and_(Job.state == "running", has_expired(now)))


def has_expired(now: datetime) -> ColumnElement[bool]:
    """SQL condition: the job's lease has expired."""
    return or_(Job.lease_expires_at.is_(None), Job.lease_expires_at < now)


def add_event(session: Session, tenant: str, job_id: str, data: dict[str, Any], now: datetime) -> None:
    """Append an event with ``data`` to a job whose row this transaction has locked, so that events keep their order."""
    last = session.scalar(select(func.max(JobEvent.sequence)).where(JobEvent.job_id == job_id))
    session.add(JobEvent(tenant=tenant, job_id=job_id, sequence=(last or 0) + 1, data=data, created_at=now))


def running(session: Session) -> list[Job]:
    """All running jobs, including those with expired leases."""
    return list(session.scalars(select(Job).where(Job.state == "running")))


def waiting_jobs(session: Session, announced_before: datetime, limit: int) -> list[Job]:
    """Of the first ``limit`` queued jobs, those not sent to the broker since ``announced_before``."""
    first = select(Job.id).where(Job.state == "queued").order_by(Job.created_at, Job.id).limit(limit)
    due = or_(Job.enqueued_at.is_(None), Job.enqueued_at < announced_before)
    return list(session.scalars(select(Job).where(Job.id.in_(first), Job.state == "queued", due)))


def due(session: Session, now: datetime) -> list[Job]:
    """Waiting jobs whose waiting time is over at ``now``."""
    return list(session.scalars(select(Job).where(*resting_until(now))))


def resting_until(now: datetime) -> list[ColumnElement[bool]]:
    """SQL conditions: the job waits for a time that isn't after ``now``."""
    return [Job.state == WAITING, Job.not_before <= now]


def open_jobs(session: Session, tenant: str) -> int:
    """Number of a tenant's queued, running and waiting jobs without trials.

    A lock makes other callers of the same tenant wait until this transaction ends.
    """
    if session.get_bind().dialect.name == "postgresql":  # SQLite has one writer at a time
        session.execute(select(func.pg_advisory_xact_lock(func.hashtext(f"jobs of {tenant}"))))
    states = ("queued", "running", WAITING)
    query = select(func.count(Job.id)).where(Job.tenant == tenant, Job.type != "trial", Job.state.in_(states))
    return session.scalar(query) or 0


# A training waits for its trials, which are jobs too; a job that ends updates the others in the same transaction.
#
# A training's row is locked before those of its trials, which prevents deadlocks.


def hold_parent(session: Session, job_id: str) -> str | None:
    """Lock a trial's training until the transaction ends, and return its id; None if the job is no trial."""
    parent = session.scalar(select(Trial.parent_id).where(Trial.job_id == job_id))
    if parent is not None:
        session.execute(select(Job.id).where(Job.id == parent).with_for_update())
    return parent


def settle(session: Session, job_id: str, now: datetime) -> None:
    """Update the other jobs of a training of which a job has ended.

    If it was the training, its open trials are cancelled, running ones at their next chunk, and the policies of all
    are deleted. If it was a trial, its training is woken once no trial is queued or running.
    """
    family = select(Trial.job_id).where(Trial.parent_id == job_id)
    open_ones = session.execute(select(Job.id, Job.tenant).where(Job.id.in_(family), Job.state.in_(OPEN))).all()
    for trial in open_ones:
        if change(session, trial.id, [Job.state.in_(("queued", WAITING))], **cancelled_columns(now)):
            add_event(session, trial.tenant, trial.id, {"state": "cancelled"}, now)
        else:
            change(session, trial.id, [Job.state == "running"], cancel_requested=True)
    conditions = [Trial.parent_id == job_id, Trial.artifact.is_not(None)]
    session.execute(update(Trial).where(*conditions).values(artifact=None).execution_options(synchronize_session=False))
    parent = session.scalar(select(Trial.parent_id).where(Trial.job_id == job_id))
    if parent is not None:
        wake(session, parent, now)


def wake(session: Session, parent_id: str, now: datetime) -> bool:
    """Queue a waiting training if none of its trials is queued or running; True if this call did."""
    at_work = select(Job.id).join(Trial, Trial.job_id == Job.id)
    at_work = at_work.where(Trial.parent_id == parent_id, Job.state.in_(("queued", "running")))
    if session.scalar(at_work.limit(1)) is not None:
        return False
    if not change(session, parent_id, [Job.state == WAITING], **requeued_columns(now)):
        return False
    after_commit(session, lambda: queue.enqueue(TASKS["train"], parent_id))
    return True


def remove(session: Session, job_ids: Sequence[str]) -> None:
    """Delete ended jobs with their trials, without commit; foreign keys delete their events. Unknown ids have no
    effect."""
    trials = session.scalars(select(Trial.job_id).where(Trial.parent_id.in_(job_ids))).all()
    statement = delete(Job).where(Job.id.in_([*job_ids, *trials]))
    session.execute(statement.execution_options(synchronize_session=False))


# SQL that reads jobs and their events for the API.


def find(session: Session, tenant: str, job_id: str) -> Job | None:
    """A tenant's job by id; None if there is none."""
    return session.scalar(select(Job).where(Job.tenant == tenant, Job.id == job_id))


class Filter(NamedTuple):
    """Filter of a list of jobs by workload, state, type, and first characters of a job's id or of its workload's name
    (``search``); None: any."""

    workload_id: str | None = None
    state: str | None = None
    type: str | None = None
    search: str | None = None


def list_jobs(
    session: Session, tenant: str, request: PageRequest, chosen: Filter, *, descending: bool = True
) -> Slice[Job]:
    """One page of a tenant's jobs without trials, newest or oldest first; raises Invalid for a foreign cursor."""
    whole = select(Job).options(defer(Job.request))  # which may name thousands of executions
    statement = whole.where(Job.tenant == tenant, Job.type != "trial")
    if chosen.workload_id is not None:
        statement = statement.where(Job.workload_id == chosen.workload_id)
    if chosen.state is not None:
        states = (chosen.state, WAITING) if chosen.state == "running" else (chosen.state,)
        statement = statement.where(Job.state.in_(states))
    if chosen.type is not None:
        statement = statement.where(Job.type == chosen.type)
    if chosen.search is not None:
        statement = statement.where(found_by(tenant, Job, chosen.search))
    keys = [Job.created_at, Job.id]
    return paginate(session, statement, keys, request, descending=descending, weigh=_weight)


def _weight(row: Job) -> int:
    return json_size([row.error, row.result])


def workload_names(session: Session, workload_ids: Sequence[str]) -> dict[str, str]:
    """Names of workloads by id."""
    rows = session.execute(select(Workload.id, Workload.name).where(Workload.id.in_(workload_ids)))
    return {row.id: row.name for row in rows}


def events(session: Session, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """The first ``limit`` events after a sequence number, in order."""
    statement = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.sequence > after)
    return list(session.scalars(statement.order_by(JobEvent.sequence).limit(limit)))


def waiting_seconds(session: Session, clock: Clock = database_time) -> float:
    """Longest time in seconds since the last event of a queued job; 0 if no job is queued."""
    last = select(func.max(JobEvent.created_at).label("at")).join(Job, Job.id == JobEvent.job_id)
    queued = last.where(Job.state == "queued").group_by(Job.id).subquery()
    since = session.scalar(select(func.min(queued.c.at, type_=UtcDateTime())))
    return 0.0 if since is None else max(0.0, (clock(session) - since).total_seconds())


JOB_REMEDY = "read the job's error, mend its cause, and retry the job"


def failure(job: Job, workload: str) -> tuple[str, str]:
    """Text for notices and messages on a failed job: what happened and why; ``workload``: the workload's name."""
    why = str((job.error or {}).get("detail", "no reason was given"))
    return f"Job {job.id[:8]} ({job.type} of {workload}) failed", why


def counts(session: Session) -> dict[tuple[str, str], int]:
    """Number of jobs by type and state."""
    rows = session.execute(select(Job.type, Job.state, func.count()).group_by(Job.type, Job.state))
    return {(type_, state): number for type_, state, number in rows}
