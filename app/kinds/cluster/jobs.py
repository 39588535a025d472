"""Table of the jobs present in a cluster, and its updates: time, new nodes, arrivals, ends.

J jobs in order of submission, N nodes. The simulator and the service share it. Learning progress is kept elsewhere: the
simulator computes it, and launchers report it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEVER = np.inf


class Jobs(NamedTuple):
    """Table of the J jobs in a cluster of N nodes; times are seconds since the cluster's start.

    Attributes:
        submitted: time of submission, [J].
        queue: position of the queue, 0 the most urgent, [J].
        requested: GPUs requested, [J].
        minimum, maximum: fewest and most GPUs it can use when it runs, [J].
        allocation: GPUs it holds on each node, [J, N].
        running: seconds with GPUs so far, restarts included, [J].
        demoted: time when ``running`` × ``requested`` reached the demotion threshold (Tiresias), ``NEVER`` before, [J].
        restarts: number of times its nodes changed, the first start included, [J].
        restarting: seconds until it trains on its present nodes, [J].
    """

    submitted: Floats
    queue: Integers
    requested: Integers
    minimum: Integers
    maximum: Integers
    allocation: Integers
    running: Floats
    demoted: Floats
    restarts: Integers
    restarting: Floats

    @property
    def gpus(self) -> Integers:
        """Number of GPUs that each of the J jobs holds on all nodes, [J]."""
        return self.allocation.sum(axis=1)


def none(nodes: int) -> Jobs:
    """Return an empty table of jobs for a cluster of ``nodes`` nodes."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Jobs(real, whole, whole, whole, whole, np.zeros((0, nodes), np.int64), real, real, whole, real)


def arrive(
    jobs: Jobs, submitted: Floats, queue: Integers, requests: Integers, limits: tuple[Integers, Integers]
) -> Jobs:
    """Return the table with K jobs appended that hold no GPUs.

    Args:
        jobs: the table before.
        submitted: times of submission, seconds since the cluster's start, [K].
        queue: positions of the queues, [K].
        requests: GPUs requested, [K].
        limits: fewest and most GPUs that each can use, [K] each.
    """
    count, nodes = len(submitted), jobs.allocation.shape[1]
    zeros, whole = np.zeros(count), np.zeros(count, np.int64)
    allocation, demoted = np.zeros((count, nodes), np.int64), np.full(count, NEVER)
    new = Jobs(submitted, queue, requests, *limits, allocation, zeros, demoted, whole, zeros)
    return Jobs._make(np.concatenate(pair) for pair in zip(jobs, new, strict=True))


def keep(jobs: Jobs, which: NDArray[np.bool_] | Integers | Sequence[int]) -> Jobs:
    """Return the table of the jobs selected by ``which``: a mask over all jobs, or indices in the wanted order."""
    return Jobs._make(column[which] for column in jobs)


def pass_time(jobs: Jobs, now: float, seconds: float, demotion: float) -> Jobs:
    """Return the table after ``seconds`` pass, up to the time ``now``: running time, demotions and restarts change.

    Args:
        jobs: the table before.
        now: time after, seconds since the cluster's start.
        seconds: time that passes.
        demotion: running seconds × GPUs requested from which a job is demoted.
    """
    runs = jobs.allocation.any(axis=1)
    running = jobs.running + seconds * runs
    served = runs & (jobs.demoted == NEVER) & (running * jobs.requested >= demotion)
    restarting = np.where(runs, np.maximum(jobs.restarting - seconds, 0.0), jobs.restarting)
    return jobs._replace(running=running, demoted=np.where(served, now, jobs.demoted), restarting=restarting)


def move(jobs: Jobs, allocation: Integers, restart_seconds: float) -> Jobs:
    """Return the table of J jobs with ``allocation``, GPUs on each of N nodes [J, N]. Jobs whose nodes change, and
    that have GPUs now, restart for ``restart_seconds``."""
    moved = (allocation != jobs.allocation).any(axis=1) & allocation.any(axis=1)
    return jobs._replace(
        allocation=allocation,
        restarts=jobs.restarts + moved,
        restarting=np.where(moved, restart_seconds, jobs.restarting),
    )
