"""The tasks as Celery knows them. What they do is imported when the first one comes, so that workers start fast.

A message only wakes a worker up: what it does goes by the job that it takes, which may be another tenant's, and of
another type. So it is here, and not with Celery, which knows the message alone, that work has an end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple

from app.processes import importing
from app.queue import EVALUATE, FIT, TRAIN, TRIAL
from workers.celery import celery
from workers.tasks.base import RunningJob, run_job, yielding


class Work(NamedTuple):
    """Where what does a type of job is found, for how long it may go on, and whether it gives way to others."""

    module: str
    function: str
    hours: int
    yields: bool


WORK = {
    "fit": Work("trained", "fit", 1, yields=False),
    "train": Work("online", "train", 24, yields=True),
    "trial": Work("trained", "trial", 24, yields=True),
    "evaluate": Work("evaluate", "evaluate", 24, yields=False),
}


@cache
def _found(module: str, function: str) -> Callable[[RunningJob], None]:
    with importing():
        found: Callable[[RunningJob], None] = getattr(import_module(f"workers.tasks.{module}"), function)
    return found


def do(job: RunningJob) -> None:
    """Do a job that is held. The kernel ends this process with it where it takes too long, whatever it is at."""
    of_type = WORK[job.lease.type]
    work = _found(of_type.module, of_type.function)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(of_type.hours * 3600)
    try:
        (yielding(work) if of_type.yields else work)(job)
    finally:
        signal.alarm(0)


def take(job_id: str) -> None:
    """Do the job that was announced, or the one whose turn it is."""
    run_job(job_id, do)


for name in (FIT, TRAIN, TRIAL, EVALUATE):
    celery.task(name=name, acks_late=True, ignore_result=True)(take)
