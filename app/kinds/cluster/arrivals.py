"""Arrival process of jobs: hourly rate by queue and hour of the day, and a sample of the jobs that arrived."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats

HOURS = 24
HOUR_SECONDS = 3600.0
QUEUE, APPLICATION, GPUS, DATA, DURATION, SAMPLES = range(6)
"""Columns of ``Arrivals.jobs``."""


class Arrivals(NamedTuple):
    """Arrival statistics of Q queues, and n past jobs.

    Attributes:
        rate: jobs per hour, by hour of the day (UTC), [Q, 24].
        variation: squared coefficient of variation of the rate of one hour about ``rate``, [Q].
        jobs: past jobs, [n, 6]; columns: queue, application (−1: unknown), GPUs requested, data size, seconds it ran,
            samples it trained on at the efficiency of its initial batch (the last three NaN: unknown).
    """

    rate: Floats
    variation: Floats
    jobs: Floats


def none(queues: int) -> Arrivals:
    """Arrivals of ``queues`` queues before any log is known: rates of 0 per hour and no past jobs."""
    return Arrivals(np.zeros((queues, HOURS)), np.zeros(queues), np.zeros((0, 6)))
