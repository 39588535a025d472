"""A cluster, interval by interval, as in Pollux's published simulator (Qiao et al., OSDI 2021).

In each interval every job first trains on the nodes that it has; then the rule sees all jobs that are submitted and not
complete. A job whose nodes change loses some seconds, and holds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.kinds.cluster import jobs as table
from app.kinds.cluster.allocation.neighbours import Neighbours, slowdowns
from app.kinds.cluster.allocation.placement import place
from app.kinds.cluster.allocation.situation import Outlook, Rule, Situation
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from workers.kinds.cluster.simulator.log import Submission
from workers.kinds.cluster.simulator.measured import ONE_GPU, Application, Batch
from workers.kinds.cluster.simulator.outlook import MeasuredOutlook
from workers.kinds.cluster.simulator.training import Progress, Rates


@dataclass(frozen=True)
class Settings:
    """Of a cluster: nodes × GPUs, seconds of an interval and of a restart, GPU-seconds before a job is less urgent."""

    nodes: int = 16
    gpus: int = 4
    interval: float = 60.0
    restart_seconds: float = 30.0
    demotion: float = 16 * 3600.0


class ClusterSimulator:
    """See the module.

    Args:
        applications: by name.
        log: jobs in order of submission.
        rule: who gets how many GPUs.
        settings: of the cluster.

    Attributes:
        now: seconds since the start.
        jobs: that are there now, [J].
        progress: theirs.
        completed: seconds from submission to completion, by name.
        which: their numbers in the log, [J].
        applications: of all jobs of the log.
        capacity: GPUs of each node, [N]; it may be changed between intervals.
        speed: of a GPU of each node against those that were measured; of a job the slowest of its nodes counts, [N].
        log_slowdown: what jobs of one application (row) suffer beside one of another, see ``Neighbours``, [A, A].
        told: whether rules and placement know of that.
    """

    def __init__(
        self,
        applications: Mapping[str, Application],
        log: Sequence[Submission],
        rule: Rule,
        settings: Settings | None = None,
    ) -> None:
        self.settings, self.log, self._rule = settings or Settings(), log, rule
        self.applications = [applications[job.application] for job in log]
        self.capacity: Integers = np.full(self.settings.nodes, self.settings.gpus)
        self.speed: Floats = np.ones(self.settings.nodes)
        self.log_slowdown: Floats = np.zeros((len(applications), len(applications)))
        self.told = True
        self._rates = Rates(applications)
        self.now, self._came = 0.0, 0
        self.jobs: Jobs = table.none(self.settings.nodes)
        self.progress = Progress(self._rates, np.zeros(0, np.int64), np.zeros(0))
        self.which: list[int] = []
        self._rows: Integers = np.zeros(0, np.int64)
        self._limits = [limits(self.applications[number], job) for number, job in enumerate(log)]
        self.completed: dict[str, float] = {}

    @property
    def over(self) -> bool:
        """Whether all jobs of the log are complete."""
        return len(self.completed) == len(self.log)

    def run(self) -> dict[str, float]:
        """Seconds from submission to completion of every job, by name."""
        while not self.over:
            self.step()
        return self.completed

    def step(self) -> None:
        """One interval."""
        seconds = self.settings.interval
        if self.which:
            self._train(seconds)
        self.now += seconds
        self._leave()
        self._arrive()
        if self.which:
            self._decide()

    def _train(self, seconds: float) -> None:
        runs = self.jobs.held.any(axis=1)
        left = np.where(runs, seconds - np.minimum(self.jobs.restarting, seconds), 0.0)
        self.progress.train(self, left, seconds)
        self.jobs = table.pass_time(self.jobs, self.now + seconds, seconds, self.settings.demotion)

    def _leave(self) -> None:
        ended = ~np.isnan(self.progress.ended)
        if not ended.any():
            return
        for at in np.flatnonzero(ended).tolist():
            job = self.log[self.which[at]]
            self.completed[job.name] = self.now - self.settings.interval + self.progress.ended[at] - job.time
        stay = ~ended
        self.jobs, self._rows = table.keep(self.jobs, stay), self._rows[stay]
        self.progress.keep(stay)
        self.which = [number for number, stays in zip(self.which, stay.tolist(), strict=True) if stays]

    def rows(self, at: Integers) -> Integers:
        """See ``Pace``."""
        return self._rows[at]

    def speeds(self, at: Integers) -> Floats:
        """See ``Pace``."""
        found = np.where(self.jobs.held[at] > 0, self.speed, np.inf).min(axis=1)
        beside = self.neighbours
        return found if beside is None else found / slowdowns(beside, self.jobs.held)[at]

    @property
    def neighbours(self) -> Neighbours | None:
        """What the jobs that are there do to one another, if anything."""
        return Neighbours(self.progress.application, self.log_slowdown) if self.log_slowdown.any() else None

    def trained(self, at: Integers) -> None:
        """See ``Pace``: batches stay as they were submitted."""

    def _arrive(self) -> None:
        first = self._came
        while self._came < len(self.log) and self.log[self._came].time <= self.now:
            self._came += 1
        new = range(first, self._came)
        if not new:
            return
        came = [self.log[number] for number in new]
        minimum, maximum = np.array([self._limits[number] for number in new], np.int64).T
        submitted, asked = np.array([job.time for job in came]), np.array([job.gpus for job in came], np.int64)
        queue = np.array([job.queue for job in came], np.int64)
        self.jobs = table.arrive(self.jobs, submitted, queue, asked, (minimum, maximum))
        numbers = np.array([self._rates.numbers[job.application] for job in came])
        self.progress.join(numbers, np.array([job.data for job in came], np.float64))
        self._rows = np.concatenate([self._rows, np.zeros(len(new), np.int64)])
        self.which += new

    def _decide(self) -> None:
        situation = self.situation()
        held = place(situation, self._rule(situation))
        moved = np.flatnonzero((held != self.jobs.held).any(axis=1) & held.any(axis=1))
        self.jobs = table.move(self.jobs, held, self.settings.restart_seconds)
        self.started(moved)

    def started(self, at: Integers) -> None:
        """The jobs at these positions are on new nodes."""
        for job in at.tolist():
            self._rows[job] = self._row(job)

    def situation(self) -> Situation:
        """What the rule sees."""
        outlook = MeasuredOutlook(
            [self.applications[number] for number in self.which],
            [self.log[number].batch for number in self.which],
            self.jobs.maximum,
            self.capacity,
            self.progress,
        )
        return self.seen(outlook)

    def seen(self, outlook: Outlook) -> Situation:
        """The moment, with what is expected of the jobs."""
        beside = self.neighbours if self.told else None
        return Situation(self.now, self.capacity, self.jobs, outlook, self.settings.restart_seconds, beside)

    def _row(self, at: int) -> int:
        """The rate of a job on the nodes that it has."""
        application = self.applications[self.which[at]]
        placement = packed_first(self.jobs.held[at])
        return self._rates.row(int(self.progress.application[at]), placement, self._batch(application, at, placement))

    def _batch(self, application: Application, at: int, placement: tuple[int, ...]) -> Batch:
        return application.batch_of(self.log[self.which[at]].batch, sum(placement))


def packed_first(held: Integers) -> tuple[int, ...]:
    """GPUs on the nodes of one job, most first, from GPUs on all nodes, [N]."""
    return tuple(sorted((count for count in held.tolist() if count), reverse=True))


def limits(application: Application, job: Submission) -> tuple[int, int]:
    """Fewest and most GPUs that a job can use at its batch size."""
    if application.name in ONE_GPU:
        return 1, 1
    return 1, max(1, job.batch // application.smallest_local)
