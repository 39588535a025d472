"""Many clusters of measured applications at once, for the compiled loops: tables of rates, and logs as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from typing_extensions import override

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Outlook, Situation
from app.kinds.cluster.strategies import fitting
from app.kinds.cluster.throughput import TRIED
from tests.pollux.measured import NCF_BATCH, ONE_GPU, Application, Batch
from tests.pollux.simulator import HOUR, Settings, Submission
from tests.pollux.simulator import draw as draw_jobs
from workers.kinds.cluster.episodes import Episodes, HiddenJobs, Source, jobs_of, usual
from workers.kinds.cluster.kernels import (
    ENDED,
    THERE,
    Clusters,
    Rules,
    allocate_gpus,
    apply_allocation,
    kernel,
    most_gpus,
    pass_interval,
)
from workers.kinds.cluster.world import empty


@kernel
def play(rules: Rules, clusters: Clusters) -> int:
    """Play all logs to their ends under ``allocate_gpus``; how many jobs were decided for, each at each moment."""
    decisions = 0
    for b in range(len(clusters.now)):
        jobs = np.isfinite(clusters.time[b]).sum()
        while clusters.counts[b, ENDED] < jobs:
            pass_interval(rules, clusters, b)
            decisions += clusters.counts[b, THERE]
            if clusters.counts[b, THERE]:
                apply_allocation(rules, clusters, b, allocate_gpus(rules, clusters, b))
    return decisions


def tabled(applications: Mapping[str, Application], settings: Settings, growth: int = 0) -> Rules:
    """Applications whose jobs train, in each epoch, at the batch that is best by what was measured of them."""
    capacity = np.full(settings.nodes, settings.gpus)
    ones, sizes = list(applications.values()), fitting(capacity)
    epochs = max(one.epochs for one in ones)
    rate, ends = np.zeros((len(ones), capacity.sum() + 1, epochs)), np.full((len(ones), epochs), np.inf)
    for kind, one in enumerate(ones):
        ends[kind, : one.epochs] = one.ends
        for gpus in sizes.tolist():
            rate[kind, gpus, : one.epochs] = _fastest(one, gpus, settings.gpus)
    most = [np.flatnonzero(row.any(axis=1))[-1] for row in rate]
    lengths, alone = np.array([one.epochs for one in ones]), (np.ones(1), np.full(1, np.inf), np.inf)
    return Rules(
        sizes, rate, ends, lengths, np.array(most), settings.interval, settings.restart_seconds, growth, *alone
    )


def _fastest(one: Application, gpus: int, node: int) -> Floats:
    """Iterations a second on so many GPUs, packed, at the best batch of each epoch, [epochs]; 0 where none is legal."""
    fastest = np.zeros(one.epochs)
    if gpus:
        placement = [node] * (gpus // node) + ([gpus % node] if gpus % node else [])
        for batch in _batches(one, gpus):
            total = gpus * batch.atomic * (batch.accumulated + 1)
            fastest = np.maximum(fastest, one.gain(one.initial, total) / one.update_seconds(placement, batch))
    return fastest


def _batches(one: Application, gpus: int) -> set[Batch]:
    if one.name in ONE_GPU:
        return {one.batch_of(NCF_BATCH, 1)} if gpus == 1 else set()
    first = max(one.initial, one.smallest_local * gpus)
    if first > one.largest:
        return set()
    totals = first * (one.largest / first) ** np.linspace(0, 1, TRIED)
    batches = {one.batch_of(int(total), gpus) for total in totals}
    return {batch for batch in batches if one.smallest_local <= batch.atomic <= one.largest_local}


def clusters(
    logs: Sequence[Sequence[Submission]],
    names: Sequence[str],
    settings: Settings,
    changes: Sequence[Sequence[tuple[float, int, int]]] = (),
    speed: Floats | None = None,
) -> Clusters:
    """Clusters before anything has happened, one for each log; ``names`` of applications in the order of the rules.

    Args:
        logs: jobs in order of submission, [B].
        names: of applications.
        settings: of each cluster.
        changes: of nodes: seconds, node and its GPUs from then on, by cluster in their order; none where empty.
        speed: of a GPU of each node against those that were measured, [N]; None: as fast.
    """
    batch, length = len(logs), max(map(len, logs))
    most = max(map(len, changes), default=0)
    time, change = np.full((batch, length), np.inf), np.full((batch, most, 3), np.inf)
    application, queue = np.zeros((batch, length), np.int64), np.zeros((batch, length), np.int64)
    requested = np.ones((batch, length), np.int64)
    for row, log in enumerate(logs):
        time[row, : len(log)] = [job.time for job in log]
        application[row, : len(log)] = [names.index(job.application) for job in log]
        requested[row, : len(log)] = [job.gpus for job in log]
        queue[row, : len(log)] = [job.queue for job in log]
    for row, result in enumerate(changes):
        change[row, : len(result)] = np.array(result, np.float64).reshape(-1, 3)
    capacity = np.full(settings.nodes, settings.gpus)
    outcome = empty(time, capacity)._replace(application=application, queue=queue, asked=requested, change=change)
    return outcome if speed is None else outcome._replace(speed=np.tile(speed, (batch, 1)))


class TabledOutlook(Outlook):
    """What is expected of the jobs that are there in one cluster, [J], by the tables; an update is an iteration.

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

    @override
    def update_seconds(self) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self._rate, np.float64)

    @override
    def updates(self) -> Floats:
        return np.asarray(self._left, np.float64)

    @override
    def goodput(self, gpus: Integers) -> Floats:
        return self._rate[:, gpus]

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """The loss after k iterations is taken to be 1/(k + 1), as live runs expect it."""
        after = self._done[:, None] + np.minimum(self.goodput(gpus) * seconds, self._left[:, None])
        return np.asarray(1.0 / (self._done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    @override
    def seconds_left(self, gpus: Integers) -> Floats:
        with np.errstate(divide="ignore"):
            return np.asarray(self._left[:, None] / np.take_along_axis(self._rate, gpus, axis=1), np.float64)


def moment(rules: Rules, episodes: Episodes, b: int) -> Situation:
    """What rules see of cluster ``b``: its jobs, capacity, and an outlook that hides nothing."""
    clusters = episodes.clusters
    jobs = jobs_of(episodes, b, 1, most_gpus(rules, clusters, b))
    outlook = TabledOutlook(rules, clusters, b, episodes.drawn.start[b])
    return Situation(float(clusters.now[b]), clusters.capacity[b], jobs, outlook, rules.restart)


GROWTH, BUSIEST = 2, 4.0
SECONDS = 1000.0
"""By which completion times are counted: the sum of them is to fall, not that of how much later each job ends."""


class LoggedSource(Source):
    """Clusters of measured applications that begin empty, at an hour of a log that is drawn from ``logs``.

    From once to ``BUSIEST`` times as many jobs come, since nobody's weight matters where all have what they can use.
    Nothing is forecast.

    Args:
        applications: by name.
        logs: in order of submission.
        seconds: of an episode.
        settings: of the cluster.
    """

    def __init__(
        self,
        applications: Mapping[str, Application],
        logs: Sequence[Sequence[Submission]],
        seconds: float,
        settings: Settings | None = None,
    ) -> None:
        self._settings, self._logs, self._seconds = settings or Settings(), logs, seconds
        self.applications: Sequence[str] = [*applications]
        self.rules = tabled(applications, self._settings, GROWTH)

    @override
    def draw(self, load: Floats, model: Integers, random: np.random.Generator) -> tuple[Clusters, HiddenJobs]:
        del model
        hours = max(1, int((max(log[-1].time for log in self._logs) - self._seconds) // HOUR))
        busy = load * np.exp(random.uniform(0.0, np.log(BUSIEST), len(load)))
        pieces = [self._piece(factor, int(random.integers(hours)) * HOUR, random) for factor in busy.tolist()]
        result, rules = clusters(pieces, self.applications, self._settings), self.rules
        ends = rules.ends[np.arange(len(rules.epochs)), rules.epochs - 1]
        steps = np.where(np.isfinite(result.time), ends[result.application], 0.0)
        real, none = np.zeros(result.time.shape), np.full(result.time.shape, -1)
        own = result.application
        return result, HiddenJobs(real, steps, real + SECONDS, own, np.zeros(len(pieces)), real + np.nan, none)

    def _piece(self, load: float, first: float, random: np.random.Generator) -> list[Submission]:
        jobs = draw_jobs(self._logs, load, random)
        inside = [job for job in jobs if first <= job.time < first + self._seconds] or jobs[:1]
        return [job._replace(time=max(job.time - first, 0.0)) for job in inside]

    def coming(self, second_of_day: Floats) -> Floats:
        """Zeros, [B]: nothing is forecast."""
        return np.zeros_like(second_of_day)

    @override
    def moment(self, episodes: Episodes, b: int) -> Situation:
        return moment(self.rules, episodes, b)

    def ahead(self, drawn: HiddenJobs, part: Floats) -> None:
        """None: measured applications have no learning curves."""

    def lacking(self, application: Integers, part: Floats) -> Floats:
        """Read off the usual course, whatever the application."""
        del application
        return usual(part)
