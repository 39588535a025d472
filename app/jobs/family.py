"""A training and its trials: jobs of which one waits for the others. Who ends tells the family, in one transaction.

Whoever writes a trial's row locks its training's row first, so that two writers never wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import after_commit
from app.database.tables import Job, Trial
from app.jobs import repository
from app.jobs.states import FINAL, OPEN, TASKS, WAITING, cancelled, requeued


def hold_parent(session: Session, job_id: str) -> str | None:
    """Lock the training that a job is a trial of, until this transaction ends; its id, None for other jobs."""
    parent = session.scalar(select(Trial.parent_id).where(Trial.job_id == job_id))
    if parent is not None:
        session.execute(select(Job.id).where(Job.id == parent).with_for_update())
    return parent


def settle(session: Session, job_id: str, now: datetime) -> None:
    """See to the family of a job that has ended: its trials end with it, its training goes on without it."""
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
    if not repository.change(session, parent_id, [Job.state == WAITING], **requeued(now)):
        return False
    after_commit(session, lambda: queue.enqueue(TASKS["train"], parent_id))
    return True


def close_trials(session: Session, parent_id: str, now: datetime) -> None:
    """End what is left of a training's trials: those at work stop at their next chunk, the others at once."""
    family = select(Trial.job_id).where(Trial.parent_id == parent_id)
    open_ones = session.execute(select(Job.id, Job.tenant).where(Job.id.in_(family), Job.state.in_(OPEN))).all()
    for trial in open_ones:
        if repository.change(session, trial.id, [Job.state.in_(("queued", WAITING))], **cancelled(now)):
            repository.add_event(session, trial.tenant, trial.id, {"state": "cancelled"}, now)
        else:
            repository.change(session, trial.id, [Job.state == "running"], cancel_requested=True)
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
