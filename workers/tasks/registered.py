"""The tasks as Celery knows them. What they do is imported when the first one comes, so that workers start fast."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from app.processes import importing
from app.queue import EVALUATE, FIT, TRAIN, TRIAL
from workers.celery import celery
from workers.tasks.base import RunningJob, run_job
from workers.tasks.yielding import yielding

FIT_LIMIT_SECONDS = 3600
TRAIN_LIMIT_SECONDS = 24 * 3600
EVALUATE_LIMIT_SECONDS = 24 * 3600


@cache
def _work(module: str, function: str) -> Callable[[RunningJob], None]:
    with importing():
        found: Callable[[RunningJob], None] = getattr(import_module(f"workers.tasks.{module}"), function)
    return found


@celery.task(name=FIT, acks_late=True, ignore_result=True, time_limit=FIT_LIMIT_SECONDS)
def fit_model(job_id: str) -> None:
    """Fit the domain model that a job asks for."""
    run_job(job_id, _work("fit", "fit"))


@celery.task(name=TRAIN, acks_late=True, ignore_result=True, time_limit=TRAIN_LIMIT_SECONDS)
def train_agent(job_id: str) -> None:
    """Train the agent that a job asks for."""
    run_job(job_id, yielding(_work("train", "train")))


@celery.task(name=TRIAL, acks_late=True, ignore_result=True, time_limit=TRAIN_LIMIT_SECONDS)
def train_trial(job_id: str) -> None:
    """Take one learner of a training up to its next comparison."""
    run_job(job_id, yielding(_work("sweep", "trial")))


@celery.task(name=EVALUATE, acks_late=True, ignore_result=True, time_limit=EVALUATE_LIMIT_SECONDS)
def evaluate_agents(job_id: str) -> None:
    """Judge the agents that a job names."""
    run_job(job_id, _work("evaluate", "evaluate"))
