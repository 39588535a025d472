"""What workers do with jobs: take a lease, renew it, tell progress, publish, give back; and the sweeper.

Whoever holds a job is named by (owner, fence). Every new lease has a higher fence, and every write below names the
fence that it holds, so a worker that was thought dead can do no harm when it comes back: it meets `LeaseLost`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import Database, after_commit
from app.database.tables import Job
from app.http.idempotency import repository as idempotency
from app.jobs import family, repository
from app.jobs.states import TASKS, cancelled, ended, requeued
from app.settings import Settings

ANNOUNCED_AT_ONCE = 10


class LeaseLost(Exception):
    """The job belongs to somebody else by now, has ended or was deleted: stop, write nothing."""


@dataclass(frozen=True)
class Lease:
    """A worker's claim on a job, with what it needs to start."""

    job_id: str
    tenant: str
    workload_id: str
    request: dict[str, Any]
    checkpoint: bytes | None
    owner: str
    fence: int
    attempts: int
    progress: float
    seconds: float
    """How long it lasts without being renewed."""


def claim(database: Database, job_id: str, owner: str, seconds: float, now: datetime) -> Lease | None:
    """Take a job that is queued or whose lease has expired; None when there is nothing to take."""
    with database.session() as session:
        taken = repository.change(
            session,
            job_id,
            [repository.free(now), Job.cancel_requested.is_(False)],
            state="running",
            owner=owner,
            fence=Job.fence + 1,
            attempts=Job.attempts + 1,
            lease_expires_at=now + timedelta(seconds=seconds),
        )
        job = session.get(Job, job_id) if taken else None
        if job is None:
            return None
        job.started_at = job.started_at or now
        event = {"state": "running", "progress": job.progress, "attempt": job.attempts}
        repository.add_event(session, job.tenant, job_id, event, now)
        checkpoint = repository.checkpoint(session, job_id)
        return Lease(
            job_id=job_id,
            tenant=job.tenant,
            workload_id=job.workload_id,
            request=job.request,
            checkpoint=checkpoint,
            owner=owner,
            fence=job.fence,
            attempts=job.attempts,
            progress=job.progress,
            seconds=seconds,
        )


def write(session: Session, lease: Lease, **values: Any) -> None:
    """Change the row of a job that is held; raises LeaseLost where it is not any more."""
    if not repository.change(session, lease.job_id, repository.held(lease.owner, lease.fence), **values):
        raise LeaseLost(f"job {lease.job_id}: fence {lease.fence} of {lease.owner} is not held any more")


def renewed(lease: Lease, now: datetime) -> datetime:
    """When a lease that is renewed now expires."""
    return now + timedelta(seconds=lease.seconds)


def cancel_requested(session: Session, lease: Lease) -> bool:
    """Whether a caller wants the job to stop."""
    job = session.get(Job, lease.job_id, populate_existing=True)
    return job is not None and job.cancel_requested


def heartbeat(database: Database, lease: Lease, now: datetime) -> bool:
    """Renew a lease; tells whether the job should be cancelled.

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        write(session, lease, lease_expires_at=renewed(lease, now))
        return cancel_requested(session, lease)


def progress(
    database: Database,
    lease: Lease,
    fraction: float,
    eta_seconds: float | None,
    data: dict[str, Any],
    checkpoint: bytes | None,
    now: datetime,
) -> bool:
    """Tell progress, keep a checkpoint if given, renew the lease; tells whether the job should be cancelled.

    Raises:
        LeaseLost: it has been taken over.
    """
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        write(session, lease, progress=fraction, eta_seconds=eta_seconds, lease_expires_at=renewed(lease, now), **kept)
        event = {"state": "running", "progress": fraction, "eta_seconds": eta_seconds, **data}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)
        return cancel_requested(session, lease)


def finish(session: Session, lease: Lease, result: dict[str, Any], now: datetime) -> None:
    """Mark a job as succeeded, in the transaction that publishes its result.

    Raises:
        LeaseLost: it has been taken over; the transaction must come to nothing.
    """
    _end(session, lease, now, state="succeeded", progress=1.0, result=result, event={"result": result})


def fail(database: Database, lease: Lease, problem: dict[str, Any], now: datetime) -> None:
    """Mark a job as failed for a reason (a problem document).

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        family.hold_parent(session, lease.job_id)
        _end(session, lease, now, state="failed", progress=lease.progress, error=problem, event={"error": problem})


def cancel(database: Database, lease: Lease, now: datetime) -> None:
    """Mark a job as cancelled, as was asked for.

    Raises:
        LeaseLost: it has been taken over.
    """
    with database.session() as session:
        family.hold_parent(session, lease.job_id)
        write(session, lease, **cancelled(now))
        repository.add_event(session, lease.tenant, lease.job_id, {"state": "cancelled"}, now)
        family.settle(session, lease.job_id, now)


def release(database: Database, lease: Lease, checkpoint: bytes | None, now: datetime) -> None:
    """Give a job back to the queue, e.g. because this worker is asked to stop. This is no failed attempt.

    Raises:
        LeaseLost: it has been taken over.
    """
    kept = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        family.hold_parent(session, lease.job_id)
        write(session, lease, **requeued(None), attempts=Job.attempts - 1, **kept)
        stopped = cancel_requested(session, lease)
        if stopped:
            repository.change(session, lease.job_id, [], **cancelled(now))
            family.settle(session, lease.job_id, now)
        event = {"state": "cancelled" if stopped else "queued"}
        repository.add_event(session, lease.tenant, lease.job_id, event, now)


def _end(session: Session, lease: Lease, now: datetime, *, event: dict[str, Any], state: str, **values: Any) -> None:
    write(session, lease, state=state, **values, **ended(now))
    data = {"state": state, "progress": values["progress"], **event}
    repository.add_event(session, lease.tenant, lease.job_id, data, now)
    family.settle(session, lease.job_id, now)


def sweep(
    database: Database, settings: Settings, now: datetime, is_gone: Callable[[str], bool] = lambda _owner: False
) -> list[str]:
    """Bring lost jobs back: those whose worker is silent or gone, and those that were announced to no avail.

    `is_gone(owner)` says that a worker has surely ended, which saves waiting for its lease to expire.
    Gives the ids of the jobs that were announced. Many sweepers may run at once.
    """
    with database.reading() as session:
        held = [job for job in repository.running(session) if _is_lost(job, now, is_gone)]
        waiting = repository.waiting(session, now - timedelta(seconds=settings.requeue_seconds), ANNOUNCED_AT_ONCE)
    announced = [job.id for job in held if _recover(database, job, settings.max_attempts, now)]
    announced += [job.id for job in waiting if _announce(database, job, now)]
    return announced


def purge(database: Database, settings: Settings, now: datetime) -> None:
    """Forget idempotency keys that nobody will repeat any more."""
    with database.session() as session:
        idempotency.purge(session, now - timedelta(seconds=settings.idempotency_seconds))


def _is_lost(job: Job, now: datetime, is_gone: Callable[[str], bool]) -> bool:
    expired = job.lease_expires_at is None or job.lease_expires_at < now
    return expired or (job.owner is not None and is_gone(job.owner))


def _recover(database: Database, job: Job, max_attempts: int, now: datetime) -> bool:
    """Put a job whose worker is lost back into the queue, or end it; tells whether it was announced."""
    values, event = _fate(job, max_attempts, now)
    with database.session() as session:
        same: Sequence[ColumnElement[bool]] = [
            *repository.held(job.owner or "", job.fence),
            Job.lease_expires_at == job.lease_expires_at,  # it was not renewed meanwhile
        ]
        family.hold_parent(session, job.id)
        if not repository.change(session, job.id, same, **values):
            return False
        repository.add_event(session, job.tenant, job.id, event, now)
        if values["state"] == "queued":
            after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
        else:
            family.settle(session, job.id, now)
    return bool(values["state"] == "queued")


def _fate(job: Job, max_attempts: int, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
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


def _announce(database: Database, job: Job, now: datetime) -> bool:
    """Announce a waiting job again, unless another sweeper has just done so."""
    before = Job.enqueued_at.is_(None) if job.enqueued_at is None else Job.enqueued_at == job.enqueued_at
    with database.session() as session:
        if not repository.change(session, job.id, [Job.state == "queued", before], enqueued_at=now):
            return False
        after_commit(session, lambda: queue.enqueue(TASKS[job.type], job.id))
    return True
