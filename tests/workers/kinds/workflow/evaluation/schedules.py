"""Small traces and schedules for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.simulate import Schedule


def jobs(submit: list[float], runtime: list[float], processors: list[int]) -> Trace:
    """Batch jobs of one user who estimates them well."""
    count = len(submit)
    seconds = np.array(runtime, np.float64)
    return independent_jobs(
        np.array(submit, np.float64), seconds, seconds.copy(), np.array(processors), np.zeros(count, np.int64)
    )


def drawn(count: int, seed: int, processors: int = 16, pause: float = 60.0) -> Trace:
    """Random batch jobs, estimated at up to five times their length."""
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(pause, count))
    runtime = np.round(rng.lognormal(5, 1.3, count)) + 1
    need = np.minimum(2 ** rng.integers(0, 5, count), processors)
    return independent_jobs(submit, runtime, runtime * rng.uniform(1, 5, count), need, rng.integers(0, 3, count))


def in_turn(trace: Trace, processors: int) -> Schedule:
    """First come, first served, without backfilling."""
    free: NDArray[np.float64] = np.full(processors, -np.inf)
    start, last = np.zeros(trace.tasks), -np.inf
    for task in range(trace.tasks):
        free.sort()
        last = start[task] = max(trace.submit[task], free[trace.processors[task] - 1], last)
        free[: trace.processors[task]] = last + trace.runtime[task]
    return Schedule(start, start + trace.runtime, np.zeros(trace.tasks, np.int64))
