"""Rows of jobs: lists, families of jobs, and events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, and_, delete, func, or_, select, update
from sqlalchemy.orm import Session, defer

from app import queue
from app.database.base import UtcDateTime
from app.database.engine import after_commit
from app.database.leases import Clock, database_time
from app.database.tables import Job, JobEvent, Trial, Workload
from app.http.pagination import PageRequest, Slice, json_size, paginate

# States and types of jobs, and what their rows hold in them.


TASKS: dict[str, str] = {
    "fit": queue.FIT,
    "train": queue.TRAIN,
    "trial": queue.TRIAL,
    "evaluate": queue.EVALUATE,
}
"""The task that does jobs of a type."""

WAITING = "waiting"
"""Nobody holds the job: a training waits for its trials, a trial for the comparison, a training that goes on for its
next window. Callers see it as running."""

OPEN = ("queued", "running", WAITING)
FINAL = ("succeeded", "failed", "cancelled")


def ended(now: datetime) -> dict[str, Any]:
    """Values of every ended job's row: nobody holds it, and its checkpoint is not needed any more."""
    nobody = {"owner": None, "lease_expires_at": None, "eta_seconds": None, "not_before": None}
    return {"finished_at": now, "checkpoint": None, **nobody}


def cancelled(now: datetime) -> dict[str, Any]:
    """Values of a cancelled job's row."""
    return {"state": "cancelled", "cancel_requested": True, **ended(now)}


def waiting() -> dict[str, Any]:
    """Values of the row of a job that its worker has let go until its family has come as far. No failed attempt."""
    return {
        "state": WAITING,
        "owner": None,
        "lease_expires_at": None,
        "fence": Job.fence + 1,
        "attempts": Job.attempts - 1,
    }


def resting(until: datetime) -> dict[str, Any]:
    """Values of the row of a job that its worker has let go until a time; what it lost workers by before is over."""
    return {**waiting(), "attempts": 0, "eta_seconds": None, "not_before": until}


def requeued(announced: datetime | None) -> dict[str, Any]:
    """Values of the row of a job that goes back into the queue; `announced` is when the broker is told of it."""
    return {
        "state": "queued",
        "owner": None,
        "lease_expires_at": None,
        "eta_seconds": None,
        "fence": Job.fence + 1,
        "enqueued_at": announced,
        "not_before": None,
    }


# SQL that changes jobs and their events; what only reads for callers stands in `listing`.


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


def waiting_jobs(session: Session, announced_before: datetime, limit: int) -> list[Job]:
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


# A training and its trials: jobs of which one waits for the others. Who ends tells the family, in one transaction.
#
# Whoever writes a trial's row locks its training's row first, so that two writers never wait for each other.


def hold_parent(session: Session, job_id: str) -> str | None:
    """Lock the training that a job is a trial of, until this transaction ends; its id, None for other jobs."""
    parent = session.scalar(select(Trial.parent_id).where(Trial.job_id == job_id))
    if parent is not None:
        session.execute(select(Job.id).where(Job.id == parent).with_for_update())
    return parent


def settle(session: Session, job_id: str, now: datetime) -> None:
    """End the trials of a job that has ended; if it was a trial, wake its training once no trial is at work."""
    close_trials(session, job_id, now)
    parent = session.scalar(select(Trial.parent_id).where(Trial.job_id == job_id))
    if parent is not None:
        wake(session, parent, now)


def wake(session: Session, parent_id: str, now: datetime) -> bool:
    """Queue a waiting training once none of its trials is at work; tells whether it did. Only one caller ever does."""
    at_work = select(Job.id).join(Trial, Trial.job_id == Job.id)
    at_work = at_work.where(Trial.parent_id == parent_id, Job.state.in_(("queued", "running")))
    if session.scalar(at_work.limit(1)) is not None:
        return False
    if not change(session, parent_id, [Job.state == WAITING], **requeued(now)):
        return False
    after_commit(session, lambda: queue.enqueue(TASKS["train"], parent_id))
    return True


def close_trials(session: Session, parent_id: str, now: datetime) -> None:
    """End what is left of a training's trials: those at work stop at their next chunk, the others at once."""
    family = select(Trial.job_id).where(Trial.parent_id == parent_id)
    open_ones = session.execute(select(Job.id, Job.tenant).where(Job.id.in_(family), Job.state.in_(OPEN))).all()
    for trial in open_ones:
        if change(session, trial.id, [Job.state.in_(("queued", WAITING))], **cancelled(now)):
            add_event(session, trial.tenant, trial.id, {"state": "cancelled"}, now)
        else:
            change(session, trial.id, [Job.state == "running"], cancel_requested=True)
    kept = [Trial.parent_id == parent_id, Trial.artifact.is_not(None)]
    session.execute(update(Trial).where(*kept).values(artifact=None).execution_options(synchronize_session=False))


def is_over(session: Session, job_id: str) -> bool:
    """Whether a job has ended."""
    return session.scalar(select(Job.state).where(Job.id == job_id)) in FINAL


def remove(session: Session, job_ids: Sequence[str]) -> None:
    """Delete ended jobs with their trials; foreign keys take events along."""
    trials = session.scalars(select(Trial.job_id).where(Trial.parent_id.in_(job_ids))).all()
    statement = delete(Job).where(Job.id.in_([*job_ids, *trials]))
    session.execute(statement.execution_options(synchronize_session=False))


# SQL that reads jobs and their events for callers.


def find(session: Session, tenant: str, job_id: str) -> Job | None:
    """One job of a tenant; None if it has none of this id."""
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
