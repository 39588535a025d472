"""A joint allocation job by job: GPUs go where each of them is worth most, as long as there are any."""

from __future__ import annotations

import heapq

import numpy as np

from app.kinds.cluster.jobs import Floats, Integers


def marginal(value: Floats, sizes: Integers, begin: Integers, free: int) -> Integers:
    """Positions of the sizes that jobs end at, [J].

    Each step gives one job the further GPUs that are worth most each; steps are to any larger size that still fits, so
    that a size which is worth little by itself can be passed. Of equal ones the first job, and the smaller size, wins.

    Args:
        value: what each size is worth to each job, −∞ where it can't use so many, [J, R].
        sizes: numbers of GPUs, ascending from 0, [R].
        begin: positions that jobs have already, [J]; −1 where nothing is given.
        free: GPUs that are left beside those.
    """
    at, steps = begin.copy(), list[tuple[float, int, int]]()
    rows: list[Floats] = list(value)
    for job in np.flatnonzero(at >= 0).tolist():
        _offer(steps, rows[job], sizes, (job, int(at[job])), free)
    while steps:
        _, job, target = heapq.heappop(steps)
        needed = int(sizes[target] - sizes[at[job]])
        if needed <= free:
            at[job] = target
            free -= needed
        _offer(steps, rows[job], sizes, (job, int(at[job])), free)
    return np.maximum(at, 0)


def _offer(steps: list[tuple[float, int, int]], row: Floats, sizes: Integers, of: tuple[int, int], free: int) -> None:
    """The best next step of one job among those that fit, if any is worth something."""
    job, at = of
    end = int(np.searchsorted(sizes, sizes[at] + free, side="right"))
    if end <= at + 1:
        return
    slope = (row[at + 1 : end] - row[at]) / (sizes[at + 1 : end] - sizes[at])
    best = int(slope.argmax())
    if slope[best] > 0:
        heapq.heappush(steps, (-float(slope[best]), job, at + 1 + best))
