"""The tasks as Celery knows them. What they do is imported when the first one comes, so that workers start fast."""

from __future__ import annotations

from app.queue import FIT, TRAIN
from workers.celery import celery
from workers.tasks.base import run_job

FIT_LIMIT_SECONDS = 3600
TRAIN_LIMIT_SECONDS = 24 * 3600


@celery.task(name=FIT, acks_late=True, ignore_result=True, time_limit=FIT_LIMIT_SECONDS)
def fit_model(job_id: str) -> None:
    """Fit the domain model that a job asks for."""
    from workers.tasks.fit import fit

    run_job(job_id, fit)


@celery.task(name=TRAIN, acks_late=True, ignore_result=True, time_limit=TRAIN_LIMIT_SECONDS)
def train_agent(job_id: str) -> None:
    """Train the agent that a job asks for."""
    from workers.tasks.train import train

    run_job(job_id, train)
