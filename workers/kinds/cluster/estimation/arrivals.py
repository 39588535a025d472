"""Learn how jobs arrive from logs: rates by hour of the day, how far hours stray, and a draw of the jobs themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.kinds.cluster.arrivals import HOUR_SECONDS, HOURS, Arrivals, none
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.samples.content import ASKED, BY_APPLICATION, DATA, DURATION, QUEUE, SAMPLES, TIME

MOST_JOBS = 4_096
SHRUNK = 4.0
"""Hours of the mean rate that each hour of the day counts beside its own."""


def fit_arrivals(logs: Sequence[Floats], queues: int, seed: int) -> tuple[Arrivals, dict[str, Any] | None]:
    """Of logs, [n, 7] each as samples have them; the first and the last hour of each count as far as they were seen."""
    logs = [log for log in logs if len(log)]
    if not logs:
        return none(queues), None
    counts, seen, hours = (np.concatenate(parts) for parts in zip(*(_hourly(log, queues) for log in logs), strict=True))
    mean = counts.sum(axis=0) / seen.sum()
    came = np.stack([counts[hours == hour].sum(axis=0) for hour in range(HOURS)])  # [24, Q]
    time = np.bincount(hours, seen, HOURS)[:, None]
    rate = (came + SHRUNK * mean) / (time + SHRUNK)
    variation = _variation(counts, seen, rate[hours])
    table = np.concatenate(logs)[:, [QUEUE, BY_APPLICATION, ASKED, DATA, DURATION, SAMPLES]]
    drawn = np.sort(np.random.default_rng([seed, 17]).permutation(len(table))[:MOST_JOBS])
    report = {
        "jobs": len(table),
        "hours": float(seen.sum()),
        "per_hour": mean.tolist(),
        "variation": variation.tolist(),
        "mean_gpus": float(table[:, 2].mean()),
    }
    return Arrivals(rate.T, variation, table[drawn]), report


def _hourly(log: Floats, queues: int) -> tuple[Floats, Floats, Integers]:
    """Jobs in each hour by queue, [h, Q]; parts of it that the log saw, [h]; hour of the day, [h]."""
    start, end = float(log[0, TIME]), float(log[-1, TIME])
    first = int(start // HOUR_SECONDS)
    number = int(max(end, start + HOUR_SECONDS) // HOUR_SECONDS) - first + 1
    where = (log[:, TIME] // HOUR_SECONDS).astype(np.int64) - first
    counts = np.bincount(where * queues + log[:, QUEUE].astype(np.int64), minlength=number * queues)
    edges = np.clip((first + np.arange(number + 1)) * HOUR_SECONDS, start, max(end, start + HOUR_SECONDS))
    return (
        counts.reshape(number, queues).astype(np.float64),
        np.diff(edges) / HOUR_SECONDS,
        (first + np.arange(number)) % HOURS,
    )


def _variation(counts: Floats, seen: Floats, rate: Floats) -> Floats:
    """Beyond what counts of a steady rate vary by, [Q]."""
    expected = rate * seen[:, None]
    excess = ((counts - expected) ** 2 - expected).sum(axis=0)
    return np.asarray(np.maximum(excess / np.maximum((expected**2).sum(axis=0), 1e-12), 0.0), np.float64)
