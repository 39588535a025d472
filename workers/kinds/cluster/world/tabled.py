"""What rules see of clusters that are played by tables, and that hide nothing."""

from __future__ import annotations

import numpy as np

from app.kinds.cluster.allocation.situation import Situation
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from workers.kinds.cluster.simulator.deciding import most
from workers.kinds.cluster.simulator.kernels import THERE, Clusters, Rules
from workers.kinds.cluster.world.episodes import Episodes


class TabledOutlook:
    """See ``Outlook``: of the jobs that are there in one of the clusters, [J]; an update is an iteration."""

    def __init__(self, rules: Rules, clusters: Clusters, b: int) -> None:
        there = clusters.there[b, : clusters.counts[b, THERE]]
        kind = clusters.application[b, there]
        self._rate: Floats = rules.rate[kind, :, clusters.epoch[b, there]]
        self._left = rules.ends[kind, rules.epochs[kind] - 1] - clusters.done[b, there]

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

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:  # noqa: ARG002
        """See ``Outlook``: nothing is known of losses."""
        return np.zeros((len(self._rate), len(gpus)))

    def seconds_left(self, gpus: Integers) -> Floats:
        """See ``Outlook``."""
        with np.errstate(divide="ignore"):
            return np.asarray(self._left[:, None] / np.take_along_axis(self._rate, gpus, axis=1), np.float64)


def moment(rules: Rules, episodes: Episodes, b: int) -> Situation:
    """What rules see of one of the clusters."""
    clusters = episodes.clusters
    there = clusters.there[b, : clusters.counts[b, THERE]]
    jobs = Jobs(
        clusters.time[b, there],
        clusters.queue[b, there],
        clusters.asked[b, there],
        np.ones(len(there), np.int64),
        most(rules, clusters, b),
        clusters.held[b, there],
        clusters.running[b, there],
        episodes.demoted[b, there],
        clusters.restarts[b, there],
        clusters.restarting[b, there],
    )
    outlook = TabledOutlook(rules, clusters, b)
    return Situation(float(clusters.now[b]), clusters.capacity[b], jobs, outlook, rules.restart)
