"""Any rule under priorities: one level of urgency after the other, and nobody in the stead of who is more urgent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.allocation.priority import LATE, admitted_in_order, urgency
from app.kinds.cluster.allocation.situation import Outlook, Rule, Situation, Wanted
from app.kinds.cluster.jobs import Floats, Integers


class Part(NamedTuple):
    """See ``Outlook``: of K of the jobs.

    Attributes:
        whole: of all J.
        jobs: J.
        rows: positions of those, [K].
    """

    whole: Outlook
    jobs: int
    rows: Integers

    def update_seconds(self) -> Floats:
        """See ``Outlook``."""
        return self.whole.update_seconds()[self.rows]

    def updates(self) -> Floats:
        """See ``Outlook``."""
        return self.whole.updates()[self.rows]

    def goodput(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        return self.whole.goodput(gpus)[self.rows]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """See ``Outlook``."""
        return self.whole.loss_reduction(gpus, seconds)[self.rows]

    def seconds_left(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        every = np.zeros((self.jobs, gpus.shape[1]), np.int64)
        every[self.rows] = gpus
        return self.whole.seconds_left(every)[self.rows]


def in_levels(rule: Rule, ageing_seconds: Sequence[float], patience: float = np.inf) -> Rule:
    """What ``rule`` gives to the jobs of each level of urgency, of what those before have left.

    Where one of them waits who could run on all nodes, nobody of the levels after it runs. Who is late gets its fewest
    GPUs, in order of submission, whatever the rule says: so nobody waits for ever.

    Args:
        rule: of each level.
        ageing_seconds, patience: as in ``urgency``.
    """
    ageing = np.array(ageing_seconds, np.float64)

    def levelled(situation: Situation) -> Wanted:
        level = urgency(situation.jobs, situation.now, ageing, patience)
        if len(level) and level.min() == level.max() != LATE:
            return rule(situation)
        gpus, order, packed = np.zeros(len(level), np.int64), list[Integers](), False
        for one in np.unique(level).tolist():
            rows = np.flatnonzero(level == one)
            part = _part(situation, rows, situation.gpus - int(gpus.sum()))
            wanted = _fewest(part) if one == LATE or not part.gpus else rule(part)
            gpus[rows], packed = wanted.gpus, packed or wanted.packed
            order.append(rows[wanted.order])
            if ((wanted.gpus == 0) & (part.jobs.minimum <= situation.gpus)).any():
                break
        placed = np.concatenate(order)
        return Wanted(gpus, np.concatenate([placed, np.setdiff1d(np.arange(len(level)), placed)]), packed)

    return levelled


def _fewest(situation: Situation) -> Wanted:
    """The fewest GPUs of each, as long as any is free."""
    order = np.argsort(situation.jobs.submitted, kind="stable")
    return Wanted(admitted_in_order(situation.jobs.minimum, order, situation.gpus), order)


def _part(situation: Situation, rows: Integers, free: int) -> Situation:
    """Some of the jobs, and as many of the GPUs as are free: of the first nodes.

    Without weights and deadlines of jobs, which no rule within levels heeds.
    """
    before = situation.capacity.cumsum() - situation.capacity
    capacity = np.clip(free - before, 0, situation.capacity)
    outlook = Part(situation.outlook, len(situation.jobs.queue), rows)
    return Situation(situation.now, capacity, table.keep(situation.jobs, rows), outlook, situation.restart_seconds)
