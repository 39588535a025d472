"""Registration of the tasks with Celery; their code is imported on first use, so that workers start fast.

A message only wakes a worker: the job that it then claims may be another tenant's and of another type. Therefore the
time limit is set here by the job's type, and not in Celery, which knows only the message.
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
    """Module and function of a job type, its time limit in hours, and whether it runs at the niceness of trainings."""

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
def _import_function(module: str, function: str) -> Callable[[RunningJob], None]:
    with importing():
        value: Callable[[RunningJob], None] = getattr(import_module(f"workers.tasks.{module}"), function)
    return value


def do(job: RunningJob) -> None:
    """Run a claimed job in the main thread; past its type's time limit the kernel kills this process (SIGALRM)."""
    of_type = WORK[job.lease.type]
    work = _import_function(of_type.module, of_type.function)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(of_type.hours * 3600)
    try:
        (yielding(work) if of_type.yields else work)(job)
    finally:
        signal.alarm(0)


def take(job_id: str) -> None:
    """Run the announced job, or another one if that is next in turn; do nothing if no job is free."""
    run_job(job_id, do)


for name in (FIT, TRAIN, TRIAL, EVALUATE):
    celery.task(name=name, acks_late=True, ignore_result=True)(take)
