"""Leases of jobs for workers: claim, renew, report progress, publish, release; and the sweeper of lost jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, case, func, select
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import Database, after_commit
from app.database.leases import Clock, database_time
from app.database.tables import Job
from app.http import idempotency
from app.jobs import repository
from app.jobs.repository import TASKS, cancelled_columns, ended_columns, requeued_columns, waiting
from app.settings import Settings

# Fair scheduling: workers take turns between tenants, so that no tenant waits behind all jobs of another.
#
# A broker delivers messages in order of arrival. They only wake workers up: the worker
# that gets one takes a job of the tenant with the fewest running jobs; among equals, of the tenant
# whose last job began longest ago. Within a tenant the highest priority is next, and among equals the job whose
# message it was.


def instead(session: Session, job_id: str) -> str | None:
    """Id of the job to lease in place of ``job_id``, which the broker sent; None: that one, or none is queued.

    It may be of another type, so that a fit doesn't wait behind another tenant's trainings.
    """
    announced = session.execute(select(Job.tenant, Job.state, Job.priority).where(Job.id == job_id)).one_or_none()
    if announced is None:
        return None
    tenant, state, priority = announced
    waiting = set(session.scalars(select(Job.tenant).where(Job.state == "queued").group_by(Job.tenant)))
    if waiting == {tenant}:
        # an announced job that isn't queued may have been leased in place of one of lower priority
        return _first(session, tenant, Job.priority > priority if state == "queued" else Job.priority < priority)
    if state != "queued":  # taken already, in place of another one
        waiting.discard(tenant)
    if not waiting:
        return None
    running = func.sum(case((Job.state == "running", 1), else_=0))
    query = select(Job.tenant, running, func.max(Job.started_at)).where(Job.tenant.in_(waiting)).group_by(Job.tenant)
    rows = session.execute(query).all()
    chosen = min(rows, key=lambda one: (one[1], one[2] is not None, one[2], one[0]))[0]
    return _first(session, chosen, *([Job.priority > priority] if chosen == tenant else ()))


def _first(session: Session, tenant: str, *conditions: ColumnElement[bool]) -> str | None:
    """Id of a tenant's next queued job that meets the conditions; None if there is none."""
    query = select(Job.id).where(Job.tenant == tenant, Job.state == "queued", *conditions)
    return session.scalar(query.order_by(Job.priority.desc(), Job.created_at, Job.id).limit(1))


# Workers' operations on jobs, and the sweeper.
#
# A lease is identified by (owner, fence). Every new lease has a higher fence token, and every write below is
# conditional
# on it, so a worker that lost its lease can't write: it gets `LeaseLost`.
# Leases begin and end by the database's clock, so that clocks of hosts may differ.


ANNOUNCED_AT_ONCE = 10


class LeaseLost(Exception):
    """The job's lease was lost, or the job has ended or was deleted: the worker must stop without writing."""


@dataclass(frozen=True)
class Claim:
    """Identity of a job's lease (job id, owner, fence token), on which every write is conditional."""

    job_id: str
    tenant: str
    owner: str
    fence: int


@dataclass(frozen=True)
class Lease(Claim):
    """A worker's lease on a job, with the job's data: ``seconds``: duration of the lease; ``attempts``: number of this
    attempt; ``progress``: 0 to 1; ``checkpoint``: None before the first."""

    workload_id: str
    request: dict[str, Any]
    checkpoint: bytes | None
    attempts: int
    progress: float
    seconds: float
    """Duration of the lease in seconds, unless renewed."""
    type: str
    traceparent: str | None
    """Span of the request that created the job (W3C Trace Context)."""


def claim(
    database: Database, job_id: str, owner: str, settings: Settings, clock: Clock = database_time
) -> Lease | None:
    """Lease a job that is queued or whose lease has expired; None if it can't be leased.

    If it is another tenant's turn, that tenant's next job is leased instead. A job whose worker was lost
    `settings.max_attempts` times fails instead of being leased.
    """
    with database.session() as session:
        now = clock(session)
        turn = instead(session, job_id)
        if turn is not None and _lease_job(session, turn, owner, settings, now):
            job_id = turn
        elif not _lease_job(session, job_id, owner, settings, now):
            return None
        job = session.get_one(Job, job_id)
        job.started_at = job.started_at or now
        event = {"state": "running", "progress": job.progress, "attempt": job.attempts}
        repository.add_event(session, job.tenant, job_id, event, now)
        return Lease(
            job_id=job_id,
            tenant=job.tenant,
            workload_id=job.workload_id,
            request=job.request,
            checkpoint=session.scalar(select(Job.checkpoint).where(Job.id == job_id)),
            owner=owner,
            fence=job.fence,
            attempts=job.attempts,
            progress=job.progress,
            seconds=settings.lease_seconds,
            type=job.type,
            traceparent=job.traceparent,
        )


def _lease_job(session: Session, job_id: str, owner: str, settings: Settings, now: datetime) -> bool:
    """Lease the job to this owner; False if it was not free."""
    free = [repository.free(now), Job.cancel_requested.is_(False)]
    values = {
        "state": "running",
        "owner": owner,
        "fence": Job.fence + 1,
        "attempts": Job.attempts + 1,
        "lease_expires_at": now + timedelta(seconds=settings.lease_seconds),
    }
    if repository.change(session, job_id, [*free, Job.attempts < settings.max_attempts], **values):
        return True
    spent = session.scalar(select(Job).where(Job.id == job_id, Job.attempts >= settings.max_attempts))
    if spent is not None:
        _bring_back(session, spent, free, settings.max_attempts, now)
    return False


def write(session: Session, lease: Claim, **values: Any) -> None:
    """Update columns of a leased job's row to ``values``; raises LeaseLost if the lease is not held any more."""
    if not repository.change(session, lease.job_id, repository.lease_conditions(lease.owner, lease.fence), **values):
        raise LeaseLost(f"job {lease.job_id}: fence {lease.fence} of {lease.owner} is not held any more")


def renewed_expiry(lease: Lease, now: datetime) -> datetime:
    """Expiry of a lease that is renewed at ``now``."""
    return now + timedelta(seconds=lease.seconds)


def cancel_requested(session: Session, lease: Claim) -> bool:
    """Whether cancellation of the job was requested."""
    job = session.get(Job, lease.job_id, populate_existing=True)
    return job is not None and job.cancel_requested


def heartbeat(database: Database, lease: Lease, clock: Clock = database_time) -> bool:
    """Renew a lease; True if the job should be cancelled; raises LeaseLost if the lease isn't held any more."""
    with database.session() as session:
        write(session, lease, lease_expires_at=renewed_expiry(lease, clock(session)))
        return cancel_requested(session, lease)


def progress(
    database: Database,
    lease: Lease,
    fraction: float,
    eta_seconds: float | None,
    data: dict[str, Any],
    checkpoint: bytes | None,
    clock: Clock = database_time,
) -> bool:
    """Record progress (0 to 1), and a checkpoint unless None, and renew the lease; True if the job should be cancelled.

    ``eta_seconds``: estimated remaining time, None: unknown. ``data``: further members of the event.
    Raises LeaseLost if the lease is not held any more.
    """
    columns = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        now = clock(session)
        write(
            session,
            lease,
            progress=fraction,
            eta_seconds=eta_seconds,
            lease_expires_at=renewed_expiry(lease, now),
            **columns,
        )
        event = {"state": "running", "progress": fraction, "eta_seconds": eta_seconds, **data}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)
        return cancel_requested(session, lease)


def finish(session: Session, lease: Lease, result: dict[str, Any], clock: Clock = database_time) -> None:
    """Mark a job as succeeded, in the transaction that publishes its result (a JSON object).

    Raises:
        LeaseLost: the lease is not held any more; the transaction must be rolled back.
    """
    event = {"result": result}
    _end(session, lease, clock(session), state="succeeded", progress=1.0, result=result, event=event)


def fail(database: Database, lease: Lease, problem: dict[str, Any], clock: Clock = database_time) -> None:
    """Mark a job as failed with a problem document; raises LeaseLost if its lease isn't held any more."""
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now, event = clock(session), {"error": problem}
        _end(session, lease, now, state="failed", progress=lease.progress, error=problem, event=event)


def cancel(database: Database, lease: Lease, clock: Clock = database_time) -> None:
    """Mark a job as cancelled; raises LeaseLost if its lease isn't held any more."""
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now = clock(session)
        write(session, lease, **cancelled_columns(now))
        repository.add_event(session, lease.tenant, lease.job_id, {"state": "cancelled"}, now)
        repository.settle(session, lease.job_id, now)


def release(database: Database, lease: Claim, checkpoint: bytes | None, clock: Clock = database_time) -> None:
    """Return a job to the queue, as its worker stops, without counting an attempt; cancel it if that was requested.

    ``checkpoint`` None: the stored one stays. Raises LeaseLost if the lease isn't held any more.
    """
    columns = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now = clock(session)
        write(session, lease, **requeued_columns(None), attempts=Job.attempts - 1, **columns)
        stopped = cancel_requested(session, lease)
        if stopped:
            repository.change(session, lease.job_id, [], **cancelled_columns(now))
            repository.settle(session, lease.job_id, now)
        event = {"state": "cancelled" if stopped else "queued"}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)


def cancelling(session: Session) -> list[Claim]:
    """Leases of running jobs whose cancellation was requested."""
    return _running_claims(session, Job.cancel_requested.is_(True))


def give_back(database: Database, owner: str, clock: Clock = database_time) -> list[str]:
    """Release all jobs of a process that is ended on purpose, and return their ids.

    Jobs with a requested cancellation are cancelled, others queued with their last checkpoint; this doesn't count as an
    attempt.
    """
    with database.reading() as session:
        claims, taken = _running_claims(session, Job.owner == owner), list[str]()
    for one in claims:
        with suppress(LeaseLost):  # it has ended meanwhile
            release(database, one, None, clock)
            taken.append(one.job_id)
    return taken


def _running_claims(session: Session, condition: ColumnElement[bool]) -> list[Claim]:
    result = select(Job.id, Job.tenant, Job.owner, Job.fence).where(Job.state == "running", condition)
    return [Claim(job, tenant, owner or "", fence) for job, tenant, owner, fence in session.execute(result)]


def rest(
    session: Session,
    lease: Lease,
    until: datetime,
    fraction: float,
    data: dict[str, Any],
    checkpoint: bytes,
    clock: Clock = database_time,
) -> None:
    """Let a job wait until a time, in the transaction that publishes its results so far, or cancel it if requested.

    ``fraction`` is its progress, 0 to 1; ``data`` are further members of the event.

    Raises:
        LeaseLost: the lease is not held any more; the transaction must be rolled back.
    """
    now = clock(session)
    # Its worker releases it until then; its attempts begin anew
    write(
        session,
        lease,
        **{**waiting(), "attempts": 0, "eta_seconds": None, "not_before": until},
        progress=fraction,
        checkpoint=checkpoint,
    )
    stopped = cancel_requested(session, lease)
    if stopped:
        repository.change(session, lease.job_id, [], **cancelled_columns(now))
    event = {"state": "running", "progress": fraction, "not_before": until.isoformat(), **data}
    repository.add_event(session, lease.tenant, lease.job_id, event, now)
    if stopped:
        repository.add_event(session, lease.tenant, lease.job_id, {"state": "cancelled"}, now)


def _end(session: Session, lease: Lease, now: datetime, *, event: dict[str, Any], state: str, **values: Any) -> None:
    write(session, lease, state=state, **values, **ended_columns(now))
    data = {"state": state, "progress": values["progress"], **event}
    repository.add_event(session, lease.tenant, lease.job_id, data, now)
    repository.settle(session, lease.job_id, now)


def sweep(
    database: Database,
    settings: Settings,
    is_gone: Callable[[str], bool] = lambda _owner: False,
    clock: Clock = database_time,
) -> list[str]:
    """Requeue lost jobs, send queued jobs whose message was lost to the broker again, and wake waiting jobs whose time
    has come.

    Several sweepers may run at once. ``is_gone(owner)`` is True if the worker has certainly ended, so that its leases
    needn't expire. Returns the ids of the jobs sent to the broker.
    """
    with database.reading() as session:
        now = clock(session)
        running, due = repository.running(session), repository.due(session, now)
        waiting = repository.waiting_jobs(session, now - timedelta(seconds=settings.requeue_seconds), ANNOUNCED_AT_ONCE)
    announced = [job.id for job in running if _recover(database, job, settings.max_attempts, is_gone, now)]
    announced += [job.id for job in waiting if _announce(database, job, now)]
    announced += [job.id for job in due if _wake(database, job, now)]
    return announced


def purge(database: Database, settings: Settings, clock: Clock = database_time) -> None:
    """Delete idempotency keys that are older than `settings.idempotency_seconds`, in a transaction of its own."""
    with database.session() as session:
        idempotency.purge(session, clock(session) - timedelta(seconds=settings.idempotency_seconds))


def _recover(database: Database, job: Job, max_attempts: int, is_gone: Callable[[str], bool], now: datetime) -> bool:
    """Requeue or end a job whose worker is lost; True if it was queued."""
    lost = repository.lease_conditions(job.owner or "", job.fence)
    if job.owner is None or not is_gone(job.owner):
        if not (job.lease_expires_at is None or job.lease_expires_at < now):
            return False
        lost.append(repository.has_expired(now))  # it was not renewed meanwhile
    with database.session() as session:
        return _bring_back(session, job, lost, max_attempts, now)


def _bring_back(
    session: Session, job: Job, conditions: Sequence[ColumnElement[bool]], max_attempts: int, now: datetime
) -> bool:
    """Requeue a job, or end it after too many attempts, if the conditions hold; True if it was queued."""
    repository.hold_parent(session, job.id)
    values, event = _recovery(job, max_attempts, now)
    as_read = Job.cancel_requested.is_(job.cancel_requested)  # no queued job to be cancelled is ever leased
    if not repository.change(session, job.id, [*conditions, as_read], **values):
        return False
    repository.add_event(session, job.tenant, job.id, event, now)
    if values["state"] != "queued":
        repository.settle(session, job.id, now)
        return False
    after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True


def _recovery(job: Job, max_attempts: int, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
    if job.cancel_requested:
        return cancelled_columns(now), {"state": "cancelled"}
    if job.attempts < max_attempts:
        return requeued_columns(now), {"state": "queued", "progress": job.progress, "reason": "its worker was lost"}
    problem = {
        "type": "/problems/worker-lost",
        "title": "Worker lost",
        "status": 500,
        "detail": f"its worker was lost {job.attempts} times; most likely it needs more memory than available",
        "instance": f"/jobs/{job.id}",
    }
    return {"state": "failed", "error": problem, **ended_columns(now)}, {"state": "failed", "error": problem}


def _wake(database: Database, job: Job, now: datetime) -> bool:
    """Queue a waiting job whose time has come; False if another sweeper already did."""
    with database.session() as session:
        if not repository.change(session, job.id, repository.resting_until(now), **requeued_columns(now)):
            return False
        after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True


def _announce(database: Database, job: Job, now: datetime) -> bool:
    """Send a queued job to the broker again, and store ``now`` as its time; False if it isn't queued now, or another
    sweeper did so. The broker's failure is logged, not raised: a later sweep sends it again."""
    before = Job.enqueued_at.is_(None) if job.enqueued_at is None else Job.enqueued_at == job.enqueued_at
    with database.session() as session:
        if not repository.change(session, job.id, [Job.state == "queued", before], enqueued_at=now):
            return False
        after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True
