"""Forecasts of the jobs that come to each queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.samples.content import QUEUE, TIME
from workers.estimators.forecasting.several import counted, forecasters


def forecasts(logs: Sequence[Floats], queues: Sequence[str], seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """What the model keeps of forecasters, and the report of each by queue, from the log that lasts longest.

    Args:
        logs: of jobs by time, as samples have them, [n, 6] each.
        queues: names.
        seed: of networks and trees.
    """
    log = max(logs, key=lambda one: one[-1, TIME] - one[0, TIME] if len(one) else 0.0, default=np.zeros((0, 6)))
    return forecasters(counted(log[:, TIME], log[:, QUEUE], queues), seed)
