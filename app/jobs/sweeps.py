"""Workers' operations on a training with several trials: open, report, compare, resume, end.

While trials run, their training waits without a lease; the last trial that pauses queues it again. Each trial is a job
with its own lease, fence token and checkpoint, so it is recovered like any other job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, undefer

from app import queue
from app.database.base import new_id
from app.database.engine import Database, after_commit
from app.database.leases import Clock, database_time
from app.database.tables import Job, Trial
from app.jobs import lease, repository
from app.jobs.lease import Lease, LeaseLost
from app.jobs.repository import FINAL, TASKS, WAITING, cancelled_columns, ended_columns, waiting
from app.telemetry.logs import current_traceparent

LONGEST_REASON = 1024


@dataclass(frozen=True)
class Opening:
    """Algorithm and seed of a trial to be opened."""

    algorithm: str
    seed: int


@dataclass(frozen=True)
class TrialStatus:
    """Present state of a trial, by columns of `Trial`; ``until`` and ``share`` are shares (0 to 1) of its budget.
    ``rungs``: number of parts of the budget after which it was compared; ``score``: mean return of its best policy,
    None: unknown; ``failed``: why its job ended early, None if it didn't."""

    job_id: str
    number: int
    algorithm: str
    seed: int
    rungs: int
    until: float
    share: float
    score: float | None
    ended: str | None
    failed: str | None
    report: dict[str, Any]
    artifact: bytes | None


@dataclass(frozen=True)
class TrialProgress:
    """Progress of a running trial.

    ``share``: share of its budget that it has used, 0 to 1. ``whole``: the trials' total budget, in budgets of one.
    ``budget_seconds``: seconds that one budget takes, None: unknown. ``live``: further members of the event.
    """

    share: float
    whole: float
    budget_seconds: float | None
    live: dict[str, Any]
    comparing: float
    """Share of the training's progress that is learning; the rest is evaluation."""


@dataclass(frozen=True)
class Outcome:
    """Result of a trial's rung, the part of its budget after which trials are compared: used share of the budget (0 to
    1), and mean return of its best policy (``score``)."""

    share: float
    score: float
    report: dict[str, Any]
    artifact: bytes


def open_trials(
    database: Database,
    lease: Lease,
    trials: Sequence[Opening],
    until: float,
    checkpoint: bytes,
    clock: Clock = database_time,
) -> bool:
    """Open trials that run up to the share ``until`` (0 to 1) of their budgets, while their training waits.

    ``checkpoint`` is stored for the training to resume from. False, and nothing is opened or stored, if the training
    should be cancelled. Raises LeaseLost if the training's lease is not held any more."""
    with database.session() as session:
        now = clock(session)
        if not _let_go(session, lease, now, checkpoint=checkpoint):
            return False
        begun = [_begin(session, lease, number, trial, until, now) for number, trial in enumerate(trials)]
        _announce(session, begun)
        return True


def _begin(session: Session, lease: Lease, number: int, opening: Opening, until: float, now: datetime) -> str:
    job_id, columns = new_id(), {"parent": lease.job_id, "number": number}
    common = {"tenant": lease.tenant, "created_at": now}
    job = Job(
        id=job_id,
        type="trial",
        workload_id=lease.workload_id,
        request=columns,
        priority=select(Job.priority).where(Job.id == lease.job_id).scalar_subquery(),
        enqueued_at=now,
        traceparent=current_traceparent(),
        **common,
    )
    session.add(job)
    session.flush()
    session.add(
        Trial(
            job_id=job_id,
            parent_id=lease.job_id,
            number=number,
            algorithm=opening.algorithm,
            seed=opening.seed,
            until=until,
            **common,
        )
    )
    session.flush()
    repository.add_event(session, lease.tenant, job_id, {"state": "queued", "progress": 0.0}, now)
    return job_id


def _announce(session: Session, job_ids: Sequence[str]) -> None:
    after_commit(session, lambda: queue.enqueue_group(TASKS["trial"], job_ids))


def _let_go(session: Session, current: Lease, now: datetime, **values: Any) -> bool:
    """Let a job wait without a lease; False, and the lease is kept, if it should be cancelled."""
    _hold(session, current, now)
    if lease.cancel_requested(session, current):
        return False
    lease.write(session, current, **waiting(), **values)
    return True


def resume_trials(
    database: Database,
    lease: Lease,
    survivors: Sequence[str],
    stopped: Mapping[str, str],
    until: float,
    clock: Clock = database_time,
) -> bool:
    """Resume trials up to the share ``until`` (0 to 1) of their budgets, and end others; the training waits for them.

    ``survivors``: job ids. ``stopped``: reasons by job id. False if the training should be cancelled instead.
    Raises LeaseLost if the training's lease is not held any more.
    """
    with database.session() as session:
        now = clock(session)
        if not _let_go(session, lease, now):
            return False
        _end(session, stopped, now)
        values = {"state": "queued", "enqueued_at": now, "fence": Job.fence + 1}
        sent = [job for job in survivors if repository.change(session, job, [Job.state == WAITING], **values)]
        for job in sent:
            _change(session, job, until=until)
            repository.add_event(session, lease.tenant, job, {"state": "queued"}, now)
        _announce(session, sent)
        repository.wake(session, lease.job_id, now)  # at once where none of them was left
        return True


def hold(session: Session, lease: Lease, clock: Clock = database_time) -> None:
    """Lock a training's row before rows of its trials, and renew its lease; raises LeaseLost if that isn't held."""
    _hold(session, lease, clock(session))


def _hold(session: Session, current: Lease, now: datetime) -> None:
    lease.write(session, current, lease_expires_at=lease.renewed_expiry(current, now))


def end(session: Session, stopped: Mapping[str, str], clock: Clock = database_time) -> None:
    """End paused trials: ``stopped`` has reasons by job id; an empty reason means that the whole budget was used."""
    _end(session, stopped, clock(session))


def _end(session: Session, stopped: Mapping[str, str], now: datetime) -> None:
    for job, reason in stopped.items():
        row = session.execute(select(Trial.score, Trial.tenant).where(Trial.job_id == job)).one()
        result = {"score": row.score, "ended": reason or None}
        values = {"state": "succeeded", "result": result, **ended_columns(now)}
        if repository.change(session, job, [Job.state == WAITING], **values):
            _change(session, job, ended=reason[:LONGEST_REASON] or None)
            repository.add_event(session, row.tenant, job, {"state": "succeeded", "result": result}, now)


def _change(session: Session, job_id: str, **values: Any) -> None:
    statement = update(Trial).where(Trial.job_id == job_id).values(**values)
    session.execute(statement.execution_options(synchronize_session=False))


def report_progress(
    database: Database, current: Lease, progress: TrialProgress, checkpoint: bytes | None, clock: Clock = database_time
) -> bool:
    """Record a trial's progress, and an event of its training; True if the trial should be cancelled.

    ``checkpoint``: state from which to resume, None: the stored one stays.
    Raises LeaseLost if the trial's lease is not held any more.
    """
    columns = {} if checkpoint is None else {"checkpoint": checkpoint}
    with database.session() as session:
        parent, now = repository.hold_parent(session, current.job_id), clock(session)
        lease.write(
            session, current, progress=progress.share, lease_expires_at=lease.renewed_expiry(current, now), **columns
        )
        _change(session, current.job_id, share=progress.share)
        if parent is not None:
            _report_to_parent(session, parent, current, progress, now)
        return lease.cancel_requested(session, current)


def _report_to_parent(session: Session, parent: str, lease: Lease, progress: TrialProgress, now: datetime) -> None:
    done = float(session.scalar(select(func.sum(Trial.share)).where(Trial.parent_id == parent)) or 0.0)
    running = select(func.count()).select_from(Trial).join(Job, Job.id == Trial.job_id)
    at_work = session.scalar(running.where(Trial.parent_id == parent, Job.state == "running")) or 1
    left = max(progress.whole - done, 0.0)
    eta = None if progress.budget_seconds is None else left * progress.budget_seconds / at_work + 2.0
    fraction = progress.comparing * min(done / progress.whole, 1.0)
    if not repository.change(session, parent, [Job.state == WAITING], progress=fraction, eta_seconds=eta):
        return
    event = {"state": "running", "progress": fraction, "eta_seconds": eta, **progress.live}
    repository.add_event(session, lease.tenant, parent, event, now)


def rest(database: Database, lease: Lease, outcome: Outcome, checkpoint: bytes, clock: Clock = database_time) -> bool:
    """Pause a trial until it is compared; the last one wakes its training. False if it should be cancelled instead.

    ``outcome``: its result so far; ``checkpoint``: state from which to resume. Raises LeaseLost if the trial's lease is
    not held any more, or its training was deleted.
    """
    with database.session() as session:
        parent = repository.hold_parent(session, lease.job_id)
        if parent is None:
            raise LeaseLost(f"job {lease.job_id}: its training was deleted")
        now = clock(session)
        if not _let_go(session, lease, now, checkpoint=checkpoint, progress=outcome.share, eta_seconds=None):
            return False
        if session.scalar(select(Job.state).where(Job.id == parent)) in FINAL:
            repository.change(session, lease.job_id, [Job.state == WAITING], **cancelled_columns(now))
            return True
        result = {"score": outcome.score, "report": outcome.report, "artifact": outcome.artifact}
        _change(session, lease.job_id, share=outcome.share, rungs=Trial.rungs + 1, **result)
        repository.wake(session, parent, now)
        return True


def trial_status(session: Session, job_id: str) -> TrialStatus | None:
    """Status of a trial; None if the job is no trial."""
    return next(iter(_trial_statuses(session, Trial.job_id == job_id)), None)


def trial_statuses(session: Session, parent_id: str) -> list[TrialStatus]:
    """Status of a training's trials, ordered by number; empty before they are opened."""
    return _trial_statuses(session, Trial.parent_id == parent_id)


def _trial_statuses(session: Session, which: Any) -> list[TrialStatus]:
    statement = select(Trial, Job.state, Job.error).join(Job, Job.id == Trial.job_id).where(which)
    rows = session.execute(statement.options(undefer(Trial.artifact)).order_by(Trial.number)).all()
    return [_trial_status(trial, state, error) for trial, state, error in rows]


def _trial_status(trial: Trial, state: str, error: dict[str, Any] | None) -> TrialStatus:
    failed = {"failed": str((error or {}).get("detail", "failed")), "cancelled": "cancelled"}.get(state)
    return TrialStatus(
        job_id=trial.job_id,
        number=trial.number,
        algorithm=trial.algorithm,
        seed=trial.seed,
        rungs=trial.rungs,
        until=trial.until,
        share=trial.share,
        score=trial.score,
        ended=trial.ended,
        failed=failed,
        report=trial.report or {},
        artifact=trial.artifact,
    )
