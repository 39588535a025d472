"""What a domain model makes of applications: how quickly each runs on more and more GPUs."""

from __future__ import annotations

import numpy as np

from app.charts.response import Fitted
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.throughput import Place, interval

MOST = 6
"""Applications that one picture can tell apart."""


def speeds(layout: Layout, model: ClusterModel) -> dict[str, list[Fitted]]:
    """Samples a second by GPUs, of the applications that were measured, up to the GPUs of which that is so."""
    table, found = model.throughput, dict[str, list[Fitted]]()
    for one in range(min(model.measured, MOST)):
        most = min(int(table.largest[one]), int(layout.capacity.sum()))
        gpus = np.array([2**power for power in range(most.bit_length()) if 2**power <= most])
        local = float(np.median(table.local[one]))
        place = Place(gpus, -(-gpus // int(table.node[0])), np.full(len(gpus), local))
        seconds = [np.asarray(part, np.float64) for part in interval(table, one, place)]
        mean, low, high = (gpus * local / part for part in (seconds[0], seconds[2], seconds[1]))
        curve = zip(gpus, mean, low, high, strict=True)
        found[model.applications[one]] = [Fitted(*(float(part) for part in point)) for point in curve]
    return found
