"""How jobs arrive: how many in each hour of the day, by queue, and what they ask for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from app.kinds.cluster.jobs import Floats

HOURS = 24
HOUR_SECONDS = 3600.0
QUEUE, APPLICATION, GPUS, DATA, DURATION, SAMPLES = range(6)
"""Columns of ``Arrivals.jobs``."""


class Arrivals(NamedTuple):
    """Q queues.

    Attributes:
        rate: jobs an hour by hour of the day, UTC, [Q, 24].
        variation: squared coefficient of variation of an hour's rate about that, [Q].
        jobs: some that came: queue, application (−1: not known), GPUs that it asked for, size of its data, seconds that
            it ran, samples that it trained on at the efficiency of its initial batch (NaN: not known), [n, 6].
    """

    rate: Floats
    variation: Floats
    jobs: Floats


def none(queues: int) -> Arrivals:
    """Nothing is known of any."""
    return Arrivals(np.zeros((queues, HOURS)), np.zeros(queues), np.zeros((0, 6)))
