"""Work that gives way: it takes long, and nobody waits for it who could not do without."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from workers.tasks.base import RunningJob

Work = Callable[[RunningJob], None]


def yielding(work: Work) -> Work:
    """The same work in a thread that is as nice as trainings are to be.

    On Linux niceness is a thread's, and inherited by those that it starts; a process could not take its own back.
    """

    def do(job: RunningJob) -> None:
        niceness = max(job.settings.training_nice, os.nice(0))
        with ThreadPoolExecutor(1, "yielding", os.setpriority, (os.PRIO_PROCESS, 0, niceness)) as thread:
            thread.submit(copy_context().run, work, job).result()

    return do
