"""What rules of allocation see, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from app.kinds.cluster.allocation.deadlines import Deadlines
from app.kinds.cluster.allocation.neighbours import Neighbours
from app.kinds.cluster.jobs import Floats, Integers, Jobs


class Outlook(Protocol):
    """What is expected of the jobs of a situation: J jobs, 0 to G GPUs that are packed on as few nodes as they fill.

    It is asked for what a rule wants to know and computed then.
    """

    def update_seconds(self) -> Floats:
        """Seconds of one update of the parameters, [J, G + 1]; infinite where a job can't use so many."""
        ...

    def updates(self) -> Floats:
        """How many are left, [J]."""
        ...

    def goodput(self, gpus: Integers) -> Floats:
        """Progress a second on so many GPUs, [J, R] for [R]; nothing where a job can't use so many."""
        ...

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """By what part of all that it falls the loss falls in ``seconds`` on so many GPUs, [J, R] for [R].

        Nothing where a job can't use so many.
        """
        ...

    def seconds_left(self, gpus: Integers) -> Floats:
        """Seconds until each job is finished on so many GPUs of its own, [J, K]; infinite where it can't be."""
        ...


def seconds_by_table(outlook: Outlook, gpus: Integers) -> Floats:
    """``Outlook.seconds_left`` by its other answers, at their batch sizes."""
    with np.errstate(invalid="ignore"):
        left = np.take_along_axis(outlook.update_seconds(), gpus, axis=1) * outlook.updates()[:, None]
    return np.where(np.isnan(left), np.inf, left)


class Situation(NamedTuple):
    """A moment at which GPUs are given to J jobs on N nodes.

    Attributes:
        now: seconds since the cluster's start.
        capacity: GPUs of each node, [N].
        jobs: that are there, [J].
        outlook: what is expected of them.
        restart_seconds: what a change of nodes costs a job.
        neighbours: what the jobs do to one another on shared nodes; None: nothing is known of it.
        deadlines: of the jobs; None: none has any.
    """

    now: float
    capacity: Integers
    jobs: Jobs
    outlook: Outlook
    restart_seconds: float
    neighbours: Neighbours | None = None
    deadlines: Deadlines | None = None

    @property
    def gpus(self) -> int:
        """G, all there are."""
        return int(self.capacity.sum())


class Wanted(NamedTuple):
    """What a rule says.

    Attributes:
        gpus: of each job, [J].
        order: positions of jobs in the order in which they are placed, [J].
        packed: whether jobs go to as few nodes as they fill, even if others are moved for that.
    """

    gpus: Integers
    order: Integers
    packed: bool = False


Rule = Callable[[Situation], Wanted]


def in_order(gpus: Integers) -> Wanted:
    """Jobs are placed in order of submission."""
    return Wanted(gpus, np.arange(len(gpus)))


def admitted(asked: Integers, order: Integers, free: int) -> Integers:
    """What was asked for, [J], for each job that still fits when its turn comes, else nothing."""
    gpus = np.zeros(len(asked), np.int64)
    wanted = asked.tolist()
    for job in order.tolist():
        if wanted[job] <= free:
            gpus[job] = wanted[job]
            free -= wanted[job]
            if not free:
                break
    return gpus
