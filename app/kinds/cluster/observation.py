"""What agents see of each job of a cluster beside the others: numbers of order 1; the same live and simulated."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.completion import usual_seconds
from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.allocation.sizes import grid
from app.kinds.cluster.jobs import Floats

OF_JOB = (
    "left",
    "scaling",
    "place",
    "asked",
    "has",
    "waits",
    "age",
    "waited",
    "restarts",
    "restarting",
    "most",
    "weight",
)
OF_ALL = ("free", "jobs", "mean_left", "spread_left", "short", "going", "coming")
ENTRIES = (*OF_JOB, *OF_ALL)
LARGEST, SHORT = 8.0, float(np.log1p(10.0))


def observe(situation: Situation, weight: Floats, interval: float, coming: float) -> Floats:
    """Each job as agents see it, [J, F].

    Of a job: time that is left on an equal share, how much sooner it would end on what is best for it, its place among
    the others by that, GPUs, times, restarts, the most that it may have (less where it converges), its queue's weight
    over the mean. Of all: free GPUs, jobs, what is left of them, GPUs of those that end soon, and of those to come.

    Args:
        situation: with an outlook.
        weight: of each job's queue, [J].
        interval: seconds between decisions, to count times by.
        coming: GPUs that are expected to be asked for within an hour.
    """
    jobs, total = situation.jobs, max(situation.gpus, 1)
    sizes = grid(situation)
    each = np.where(sizes > 0, situation.outlook.seconds_left(sizes), np.inf)
    seconds, gpus = usual_seconds(situation, each), jobs.gpus
    left, place = np.minimum(np.log1p(seconds / interval), LARGEST), np.empty(len(gpus))
    place[np.argsort(-seconds, kind="stable")] = np.arange(1.0, len(gpus) + 1)
    best = np.where(np.isfinite(each.min(axis=1)), each.min(axis=1), seconds)
    age = situation.now - jobs.submitted
    own = (
        left / 4 - 1,
        np.log((seconds + 1.0) / (best + 1.0)) / 2,
        place / len(gpus) - 0.5,
        np.log(jobs.asked) / 4,
        np.log1p(gpus) / 4,
        gpus == 0,
        np.log1p(age / interval) / 4,
        np.log1p(np.maximum(age - jobs.running, 0.0) / interval) / 4,
        np.log1p(jobs.restarts) / 2,
        jobs.restarting > 0,
        np.log(np.clip(jobs.maximum, 1, total) / total) / 4,
        np.log(weight / weight.mean()),
    )
    every = (
        1.0 - gpus.sum() / total,
        np.log(len(gpus) / total) / 2,
        left.mean() / 4,
        left.std() / 2,
        (left < SHORT).mean(),
        gpus[left < np.log(2.0)].sum() / total,
        min(coming / total, LARGEST),
    )
    return np.stack([*own, *(np.full(len(gpus), value) for value in every)], axis=1)
