"""Leases of jobs: taking, renewing, reporting progress, publishing, giving back; and the sweeper."""

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
from app.jobs.repository import TASKS, cancelled, ended, requeued, resting
from app.settings import Settings

# Whose job is next: workers take turns between tenants, so that nobody waits behind all that another one asked for.
#
# A broker hands jobs out in the order in which they were announced. Its messages only wake workers up, so the worker
# that one reaches takes a job of the tenant that has the least going on; of those that have equally little, of the one
# whose last job began longest ago. Within a tenant those of the highest priority are next, and of these the one that
# was announced.


def instead(session: Session, job_id: str) -> str | None:
    """The job to be taken in place of the one that was announced; None where its own turn has come, or there is none.

    It may be of another type: who waits for a fit does not wait behind another tenant's trainings.
    """
    announced = session.execute(select(Job.tenant, Job.state, Job.priority).where(Job.id == job_id)).one_or_none()
    if announced is None:
        return None
    tenant, state, priority = announced
    waiting = set(session.scalars(select(Job.tenant).where(Job.state == "queued").group_by(Job.tenant)))
    if waiting == {tenant}:
        # what is announced and does not wait may have been taken in place of one that mattered less
        return _first(session, tenant, Job.priority > priority if state == "queued" else Job.priority < priority)
    if state != "queued":  # taken already, in place of another one
        waiting.discard(tenant)
    if not waiting:
        return None
    chosen = _next_tenant(session, waiting)
    return _first(session, chosen, *([Job.priority > priority] if chosen == tenant else ()))


def _next_tenant(session: Session, waiting: set[str]) -> str:
    running = func.sum(case((Job.state == "running", 1), else_=0))
    query = select(Job.tenant, running, func.max(Job.started_at)).where(Job.tenant.in_(waiting)).group_by(Job.tenant)
    found = session.execute(query).all()
    return min(found, key=lambda one: (one[1], one[2] is not None, one[2], one[0]))[0]


def _first(session: Session, tenant: str, *conditions: ColumnElement[bool]) -> str | None:
    """The first in a tenant's line, of those that meet the conditions."""
    query = select(Job.id).where(Job.tenant == tenant, Job.state == "queued", *conditions)
    return session.scalar(query.order_by(Job.priority.desc(), Job.created_at, Job.id).limit(1))


# What workers do with jobs: take a lease, renew it, tell progress, publish, rest, give back; and the sweeper.
#
# Whoever holds a job is named by (owner, fence). Every new lease has a higher fence, and every write below names the
# fence that it holds, so a worker that was thought dead can do no harm when it comes back: it meets `LeaseLost`.
# Leases begin and end by the database's clock: what the clocks of workers and sweepers say does not matter.


ANNOUNCED_AT_ONCE = 10


class LeaseLost(Exception):
    """The job belongs to somebody else by now, has ended or was deleted: stop, write nothing."""


@dataclass(frozen=True)
class Claim:
    """Who holds a job: what every write names."""

    job_id: str
    tenant: str
    owner: str
    fence: int


@dataclass(frozen=True)
class Lease(Claim):
    """A worker's claim on a job, with what it needs to start."""

    workload_id: str
    request: dict[str, Any]
    checkpoint: bytes | None
    attempts: int
    progress: float
    seconds: float
    """How long it lasts without being renewed."""
    type: str
    traceparent: str | None
    """The span of whoever asked for the job."""


def claim(
    database: Database, job_id: str, owner: str, settings: Settings, clock: Clock = database_time
) -> Lease | None:
    """Take a job that is queued or whose lease has expired; None when there is nothing to take.

    Where other tenants wait, and it is the turn of one of them, that one's job is taken in its place.

    One whose worker was lost `settings.max_attempts` times is not taken any more, whoever announces it: it fails.
    """
    with database.session() as session:
        now = clock(session)
        turn = instead(session, job_id)
        if turn is not None and _taken(session, turn, owner, settings, now):
            job_id = turn
        elif not _taken(session, job_id, owner, settings, now):
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
            checkpoint=repository.checkpoint(session, job_id),
            owner=owner,
            fence=job.fence,
            attempts=job.attempts,
            progress=job.progress,
            seconds=settings.lease_seconds,
            type=job.type,
            traceparent=job.traceparent,
        )


def _taken(session: Session, job_id: str, owner: str, settings: Settings, now: datetime) -> bool:
    """Whether the job was free, and is this owner's now."""
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
    """Change the row of a job that is held; raises LeaseLost where it is not any more."""
    if not repository.change(session, lease.job_id, repository.held(lease.owner, lease.fence), **values):
        raise LeaseLost(f"job {lease.job_id}: fence {lease.fence} of {lease.owner} is not held any more")


def renewed(lease: Lease, now: datetime) -> datetime:
    """When a lease that is renewed now expires."""
    return now + timedelta(seconds=lease.seconds)


def cancel_requested(session: Session, lease: Claim) -> bool:
    """Whether a caller wants the job to stop."""
    job = session.get(Job, lease.job_id, populate_existing=True)
    return job is not None and job.cancel_requested


def heartbeat(database: Database, lease: Lease, clock: Clock = database_time) -> bool:
    """Renew a lease; tells whether the job should be cancelled.

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        write(session, lease, lease_expires_at=renewed(lease, clock(session)))
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
    """Tell progress, keep a checkpoint if given, renew the lease; tells whether the job should be cancelled.

    Raises:
        LeaseLost: it has been taken over.
    """
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        now = clock(session)
        write(session, lease, progress=fraction, eta_seconds=eta_seconds, lease_expires_at=renewed(lease, now), **kept)
        event = {"state": "running", "progress": fraction, "eta_seconds": eta_seconds, **data}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)
        return cancel_requested(session, lease)


def finish(session: Session, lease: Lease, result: dict[str, Any], clock: Clock = database_time) -> None:
    """Mark a job as succeeded, in the transaction that publishes its result.

    Raises:
        LeaseLost: it has been taken over; the transaction must come to nothing.
    """
    event = {"result": result}
    _end(session, lease, clock(session), state="succeeded", progress=1.0, result=result, event=event)


def fail(database: Database, lease: Lease, problem: dict[str, Any], clock: Clock = database_time) -> None:
    """Mark a job as failed for a reason (a problem document).

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now, event = clock(session), {"error": problem}
        _end(session, lease, now, state="failed", progress=lease.progress, error=problem, event=event)


def cancel(database: Database, lease: Lease, clock: Clock = database_time) -> None:
    """Mark a job as cancelled, as was asked for.

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now = clock(session)
        write(session, lease, **cancelled(now))
        repository.add_event(session, lease.tenant, lease.job_id, {"state": "cancelled"}, now)
        repository.settle(session, lease.job_id, now)


def release(database: Database, lease: Claim, checkpoint: bytes | None, clock: Clock = database_time) -> None:
    """Give a job back to the queue, e.g. because this worker is asked to stop. This is no failed attempt.

    Raises:
        LeaseLost: it has been taken over.
    """
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        repository.hold_parent(session, lease.job_id)
        now = clock(session)
        write(session, lease, **requeued(None), attempts=Job.attempts - 1, **kept)
        stopped = cancel_requested(session, lease)
        if stopped:
            repository.change(session, lease.job_id, [], **cancelled(now))
            repository.settle(session, lease.job_id, now)
        event = {"state": "cancelled" if stopped else "queued"}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)


def cancelling(session: Session) -> list[Claim]:
    """The jobs that somebody holds though they are to stop."""
    return _held(session, Job.cancel_requested.is_(True))


def give_back(database: Database, owner: str, clock: Clock = database_time) -> list[str]:
    """Take all jobs from a process that is ended on purpose: each is cancelled where that was asked for, else queued.

    This is no failed attempt, and the last checkpoint stays. Gives the ids of the jobs.
    """
    with database.reading() as session:
        held, taken = _held(session, Job.owner == owner), list[str]()
    for one in held:
        with suppress(LeaseLost):  # it has ended meanwhile
            release(database, one, None, clock)
            taken.append(one.job_id)
    return taken


def _held(session: Session, condition: ColumnElement[bool]) -> list[Claim]:
    found = select(Job.id, Job.tenant, Job.owner, Job.fence).where(Job.state == "running", condition)
    return [Claim(job, tenant, owner or "", fence) for job, tenant, owner, fence in session.execute(found)]


def rest(
    session: Session,
    lease: Lease,
    until: datetime,
    fraction: float,
    data: dict[str, Any],
    checkpoint: bytes,
    clock: Clock = database_time,
) -> None:
    """Let a job wait until a time, in the transaction that publishes what it came to; a cancelled one ends here.

    Raises:
        LeaseLost: it has been taken over; the transaction must come to nothing.
    """
    now = clock(session)
    write(session, lease, **resting(until), progress=fraction, checkpoint=checkpoint)
    stopped = cancel_requested(session, lease)
    if stopped:
        repository.change(session, lease.job_id, [], **cancelled(now))
    event = {"state": "running", "progress": fraction, "not_before": until.isoformat(), **data}
    repository.add_event(session, lease.tenant, lease.job_id, event, now)
    if stopped:
        repository.add_event(session, lease.tenant, lease.job_id, {"state": "cancelled"}, now)


def _end(session: Session, lease: Lease, now: datetime, *, event: dict[str, Any], state: str, **values: Any) -> None:
    write(session, lease, state=state, **values, **ended(now))
    data = {"state": state, "progress": values["progress"], **event}
    repository.add_event(session, lease.tenant, lease.job_id, data, now)
    repository.settle(session, lease.job_id, now)


def sweep(
    database: Database,
    settings: Settings,
    is_gone: Callable[[str], bool] = lambda _owner: False,
    clock: Clock = database_time,
) -> list[str]:
    """Bring lost jobs back: those whose worker is silent or gone, and those that were announced to no avail.

    Those that wait for a time which has come are woken up.

    `is_gone(owner)` says that a worker has surely ended, which saves waiting for its lease to expire.
    Gives the ids of the jobs that were announced. Many sweepers may run at once.
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
    """Forget idempotency keys that nobody will repeat any more."""
    with database.session() as session:
        idempotency.purge(session, clock(session) - timedelta(seconds=settings.idempotency_seconds))


def _recover(database: Database, job: Job, max_attempts: int, is_gone: Callable[[str], bool], now: datetime) -> bool:
    """Bring a job back if its worker is lost; tells whether it was announced."""
    lost = repository.held(job.owner or "", job.fence)
    if job.owner is None or not is_gone(job.owner):
        if not _expired(job, now):
            return False
        lost.append(repository.expired(now))  # it was not renewed meanwhile
    with database.session() as session:
        return _bring_back(session, job, lost, max_attempts, now)


def _expired(job: Job, now: datetime) -> bool:
    return job.lease_expires_at is None or job.lease_expires_at < now


def _bring_back(
    session: Session, job: Job, conditions: Sequence[ColumnElement[bool]], max_attempts: int, now: datetime
) -> bool:
    """Put a job back into the queue under these conditions, or end it; tells whether it will be announced."""
    repository.hold_parent(session, job.id)
    values, event = _recovery(job, max_attempts, now)
    as_read = Job.cancel_requested.is_(job.cancel_requested)  # a queued job of which that is requested is never taken
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
        return cancelled(now), {"state": "cancelled"}
    if job.attempts < max_attempts:
        return requeued(now), {"state": "queued", "progress": job.progress, "reason": "its worker was lost"}
    problem = {
        "type": "/problems/worker-lost",
        "title": "Worker lost",
        "status": 500,
        "detail": f"its worker was lost {job.attempts} times; most likely it needs more memory than there is",
        "instance": f"/jobs/{job.id}",
    }
    return {"state": "failed", "error": problem, **ended(now)}, {"state": "failed", "error": problem}


def _wake(database: Database, job: Job, now: datetime) -> bool:
    """Queue a job whose time has come, unless another sweeper has just done so."""
    with database.session() as session:
        if not repository.change(session, job.id, repository.resting_until(now), **requeued(now)):
            return False
        after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True


def _announce(database: Database, job: Job, now: datetime) -> bool:
    """Announce a waiting job again, unless another sweeper has just done so."""
    before = Job.enqueued_at.is_(None) if job.enqueued_at is None else Job.enqueued_at == job.enqueued_at
    with database.session() as session:
        if not repository.change(session, job.id, [Job.state == "queued", before], enqueued_at=now):
            return False
        after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True
