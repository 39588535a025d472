"""What rules see of clusters that are played by tables, and that hide nothing."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Floats, Integers
from workers.kinds.cluster.simulator.deciding import most
from workers.kinds.cluster.simulator.kernels import THERE, Clusters, Rules
from workers.kinds.cluster.world.episodes import Episodes, jobs_of


class TabledOutlook:
    """See ``Outlook``: of the jobs that are there in one of the clusters, [J]; an update is an iteration.

    Args:
        rules: with the tables.
        clusters: that are played.
        b: which of them.
        start: what was ``done`` of each of its jobs when it came, [all jobs].
    """

    def __init__(self, rules: Rules, clusters: Clusters, b: int, start: Floats) -> None:
        there = clusters.there[b, : clusters.counts[b, THERE]]
        kind = clusters.application[b, there]
        self._rate: Floats = rules.rate[kind, :, clusters.epoch[b, there]]
        self._left = rules.ends[kind, rules.epochs[kind] - 1] - clusters.done[b, there]
        self._done = clusters.done[b, there] - start[there]

    def update_seconds(self) -> Floats:
        """See ``Outlook``."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self._rate, np.float64)

    def updates(self) -> Floats:
        """See ``Outlook``."""
        return np.asarray(self._left, np.float64)

    def goodput(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        return self._rate[:, gpus]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """See ``Outlook``: as 1/(k + 1) after k iterations, as live runs expect it."""
        after = self._done[:, None] + np.minimum(self.goodput(gpus) * seconds, self._left[:, None])
        return np.asarray(1.0 / (self._done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    def seconds_left(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        with np.errstate(divide="ignore"):
            return np.asarray(self._left[:, None] / np.take_along_axis(self._rate, gpus, axis=1), np.float64)


def moment(rules: Rules, episodes: Episodes, b: int) -> Situation:
    """What rules see of one of the clusters."""
    clusters = episodes.clusters
    jobs = jobs_of(episodes, b, 1, most(rules, clusters, b))
    outlook = TabledOutlook(rules, clusters, b, episodes.drawn.start[b])
    return Situation(float(clusters.now[b]), clusters.capacity[b], jobs, outlook, rules.restart)
