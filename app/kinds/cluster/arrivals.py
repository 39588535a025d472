"""Arrival process of jobs: hourly rate by queue and hour of the day, and a sample of the jobs that arrived."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats

HOURS = 24
HOUR_SECONDS = 3600.0
QUEUE, APPLICATION, GPUS, DATA, DURATION, SAMPLES = range(6)
"""Columns of ``Arrivals.jobs``."""
GPUS_IN_USE = "gpus-in-use"
"""Name of the forecast series of GPUs in use; the others are named by their queue."""


class Arrivals(NamedTuple):
    """Arrival statistics of jobs in Q queues, and a sample of n past jobs.

    Attributes:
        rate: jobs per hour by queue and hour of the day (UTC), [Q, 24].
        variation: squared coefficient of variation of the rate of a single hour about ``rate``, [Q].
        jobs: past jobs, [n, 6]; columns: position of the queue, position of the application (−1: unknown), GPUs
            requested, data size in the application's unit, duration in seconds, and samples trained, each weighted by
            the statistical efficiency of the initial batch (the last three NaN: unknown).
    """

    rate: Floats
    variation: Floats
    jobs: Floats


def none(queues: int) -> Arrivals:
    """Return arrival statistics for ``queues`` queues without any log: rates of 0 jobs per hour and no past jobs."""
    return Arrivals(np.zeros((queues, HOURS)), np.zeros(queues), np.zeros((0, 6)))
