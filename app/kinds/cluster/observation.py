"""What policies see of a cluster: numbers of order 1, of any number of jobs as many; the same live and simulated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Floats, Integers

OF_QUEUE = ("running", "waiting", "asked", "waited")
OF_ALL = ("free", "jobs", "mean_left", "spread_left", "short", "scaling", "moved", "coming", "going")
LARGEST = 8.0


def entries(queues: Sequence[str]) -> tuple[str, ...]:
    """Names of what is seen, [D]."""
    return (*OF_ALL, *(f"{queue}.{name}" for queue in queues for name in OF_QUEUE))


def observe(situation: Situation, queues: int, interval: float, coming: float = 0.0) -> Floats:
    """What is seen of a situation, [D].

    Args:
        situation: with an outlook.
        queues: how many there are.
        interval: seconds between decisions, to count times by.
        coming: GPUs that are expected to be asked for within the horizon of the forecast.
    """
    jobs, total = situation.jobs, max(situation.gpus, 1)
    free = 1.0 - float(jobs.held.sum()) / total
    if not len(jobs.queue):
        return np.array([free, *[0.0] * (len(OF_ALL) - 3), coming / total, 0.0, *[0.0] * (4 * queues)])
    sizes = np.stack([jobs.minimum, jobs.asked, np.minimum(2 * jobs.asked, jobs.maximum)], axis=1)
    left = np.log1p(situation.outlook.seconds_left(np.minimum(sizes, total)) / interval)
    left = np.clip(np.nan_to_num(left, posinf=LARGEST), 0.0, LARGEST)
    asked = left[:, 1]
    ending = float(jobs.gpus[asked < np.log(2.0)].sum()) / total
    every = [
        free,
        np.log1p(len(asked) / total),
        asked.mean() / 4,
        asked.std() / 2,
        (asked < np.log1p(10.0)).mean(),
        (left[:, 1] - left[:, 2]).mean(),
        np.clip(jobs.restarts.mean() / 4, 0.0, LARGEST),
        np.clip(coming / total, 0.0, LARGEST),
        ending,
    ]
    waited = np.log1p(np.maximum(situation.now - jobs.submitted - jobs.running, 0.0) / interval) / 4
    return np.array([*every, *_of_queues(situation, queues, waited, total).ravel()])


def _of_queues(situation: Situation, queues: int, waited: Floats, total: int) -> Floats:
    """Jobs that run, jobs and GPUs that wait, how long: [Q, 4]."""
    jobs = situation.jobs
    waits = jobs.gpus == 0

    def counted(weights: Floats | Integers | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Floats:
        return np.asarray(np.bincount(jobs.queue, np.asarray(weights, np.float64), queues), np.float64)

    number = np.maximum(counted(waits), 1.0)
    columns = [
        np.log1p(counted(~waits) / total),
        np.log1p(counted(waits) / total),
        np.log1p(counted(waits * jobs.asked) / total),
        counted(waits * waited) / number,
    ]
    return np.stack(columns, axis=1)
