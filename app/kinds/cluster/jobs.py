"""Jobs that are there, as arrays, and what happens to them: time, new nodes, arrivals, ends.

J jobs in order of their submission, N nodes. The simulator and the service keep the same table by the same functions;
what a job has learned by then is not in it: the simulator computes that, and launchers report it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEVER = np.inf


class Jobs(NamedTuple):
    """The jobs of a cluster, a column each; times are seconds since the cluster's start.

    Attributes:
        submitted: when each came, [J].
        queue: number of its queue, the most urgent first, [J].
        asked: GPUs that its owner asked for, [J].
        minimum, maximum: GPUs that it can use, if any, [J].
        held: GPUs that it has on each node, [J, N].
        running: seconds for which it had any, [J].
        demoted: when it had its share of service by `asked` (Tiresias), or ``NEVER``, [J].
        restarts: how often its nodes changed, the first time included, [J].
        restarting: seconds until it trains on its present nodes, [J].
    """

    submitted: Floats
    queue: Integers
    asked: Integers
    minimum: Integers
    maximum: Integers
    held: Integers
    running: Floats
    demoted: Floats
    restarts: Integers
    restarting: Floats

    @property
    def gpus(self) -> Integers:
        """GPUs that each has, [J]."""
        return self.held.sum(axis=1)


def none(nodes: int) -> Jobs:
    """A table of no jobs."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Jobs(real, whole, whole, whole, whole, np.zeros((0, nodes), np.int64), real, real, whole, real)


def arrive(jobs: Jobs, submitted: Floats, queue: Integers, asked: Integers, limits: tuple[Integers, Integers]) -> Jobs:
    """More jobs, [K] each, that hold nothing yet; ``limits`` are minimum and maximum."""
    count, nodes = len(submitted), jobs.held.shape[1]
    zeros, whole = np.zeros(count), np.zeros(count, np.int64)
    held, demoted = np.zeros((count, nodes), np.int64), np.full(count, NEVER)
    new = Jobs(submitted, queue, asked, *limits, held, zeros, demoted, whole, zeros)
    return Jobs._make(np.concatenate(pair) for pair in zip(jobs, new, strict=True))


def keep(jobs: Jobs, which: NDArray[np.bool_] | Integers | Sequence[int]) -> Jobs:
    """Some of the jobs, in their order."""
    return Jobs._make(column[which] for column in jobs)


def pass_time(jobs: Jobs, now: float, seconds: float, demotion: float) -> Jobs:
    """``seconds`` pass, up to ``now``.

    Args:
        jobs: before.
        now: after.
        seconds: how many.
        demotion: GPU-seconds of what a job asked for after which it is less urgent.
    """
    runs = jobs.held.any(axis=1)
    running = jobs.running + seconds * runs
    served = runs & (jobs.demoted == NEVER) & (running * jobs.asked >= demotion)
    restarting = np.where(runs, np.maximum(jobs.restarting - seconds, 0.0), jobs.restarting)
    return jobs._replace(running=running, demoted=np.where(served, now, jobs.demoted), restarting=restarting)


def move(jobs: Jobs, held: Integers, restart_seconds: float) -> Jobs:
    """Jobs on other nodes, [J, N]: those whose nodes change train again after ``restart_seconds``."""
    moved = (held != jobs.held).any(axis=1) & held.any(axis=1)
    return jobs._replace(
        held=held,
        restarts=jobs.restarts + moved,
        restarting=np.where(moved, restart_seconds, jobs.restarting),
    )
