"""Optimus: GPUs go one by one to where each saves most time (Peng et al., EuroSys 2018)."""

from __future__ import annotations

import heapq

import numpy as np

from app.kinds.cluster.allocation.situation import Situation, Wanted, admitted
from app.kinds.cluster.jobs import Floats, Integers


def optimus(situation: Situation) -> Wanted:
    """The fewest GPUs for each job, in order of submission, then one more wherever that saves most of the time left.

    Jobs that have fewer GPUs are placed first.
    """
    jobs, free = situation.jobs, situation.gpus
    gpus = admitted(jobs.minimum, np.arange(len(jobs.minimum)), free)
    free -= int(gpus.sum())
    if free:
        seconds, updates = situation.outlook.update_seconds(), situation.outlook.updates()
        with np.errstate(invalid="ignore"):  # where a job can't use so many
            saved = (seconds[:, 1:-1] - seconds[:, 2:]) * updates[:, None]  # [J, G - 1]: of one more than 1 to G - 1
        give(gpus, saved, np.minimum(jobs.maximum, situation.gpus), free)
    return Wanted(gpus, np.argsort(gpus, kind="stable"))


def give(gpus: Integers, saving: Floats, limit: Integers, free: int) -> None:
    """GPUs one by one to the largest saving, as long as there is one; of equal ones to the first job.

    Args:
        gpus: of each job, [J]; it changes in place. Who has none gets none.
        saving: what one more than 1, 2, … saves each job, [J, G − 1].
        limit: GPUs of each job, [J].
        free: how many there are.
    """
    has, saved, most = gpus.tolist(), saving.tolist(), limit.tolist()
    first = [(job, gains[has[job] - 1]) for job, gains in enumerate(saved) if 0 < has[job] < most[job]]
    heap = [(-gain, job) for job, gain in first if gain > 0]
    heapq.heapify(heap)
    while free and heap:
        job = heap[0][1]
        has[job] += 1
        free -= 1
        gain = saved[job][has[job] - 1] if has[job] < most[job] else 0.0
        if gain > 0:
            heapq.heapreplace(heap, (-gain, job))
        else:
            heapq.heappop(heap)
    gpus[:] = has
