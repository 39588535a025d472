"""The simulator of clusters."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from typing_extensions import override

from app.kinds.cluster import jobs as table
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.placement import Neighbours, Outlook, Rule, Situation, place, slowdowns
from tests.pollux.goodput import seconds_by_table
from tests.pollux.measured import ONE_GPU, Application, Batch

# Logs of jobs, as the published simulator has them: who came when, with what, and asked for how many GPUs.


class Submission(NamedTuple):
    """One job of a log; ``time`` is in seconds, ``batch`` in samples over all GPUs.

    ``queue`` is its number, the most urgent 0; ``data`` the size of its data over that which was measured: an epoch has
    so many times the iterations.
    """

    name: str
    time: float
    application: str
    gpus: int
    batch: int
    queue: int = 0
    data: float = 1.0


def read_log(path: Path) -> list[Submission]:
    """The jobs of a CSV file in order of their submission."""
    with path.open(newline="") as file:
        jobs = [
            Submission(
                row["name"],
                float(row["time"]),
                row["application"],
                int(row["num_replicas"]),
                int(row["batch_size"]),
            )
            for row in csv.DictReader(file)
        ]
    return sorted(jobs, key=lambda job: job.time)


# How far jobs get while they hold GPUs: scale-invariant iterations, epoch by epoch, until the last one ends.


FIRST_ROWS = 64
COLUMNS = ("application", "data", "epoch", "done", "ended")


class Rates:
    """Scale-invariant iterations a second of what jobs may be set to, row by row; rows are made once.

    Attributes:
        numbers: where each application stands.
        ends: iterations at which epochs end, infinite after the last, [A, E].
        epochs: of each application, [A].
        table: [rows, E].
    """

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self._applications = list(applications.values())
        self.numbers = {name: number for number, name in enumerate(applications)}
        self.epochs: Integers = np.array([one.epochs for one in self._applications])
        self.ends: Floats = np.full((len(self._applications), int(self.epochs.max())), np.inf)
        for number, one in enumerate(self._applications):
            self.ends[number, : one.epochs] = one.ends
        self.table: Floats = np.zeros((FIRST_ROWS, self.ends.shape[1]))
        self._rows: dict[tuple[int, tuple[int, ...], Batch], int] = {}

    def row(self, application: int, placement: tuple[int, ...], batch: Batch) -> int:
        """The row of an application on GPUs per node, most first, at a batch."""
        key = application, placement, batch
        if key not in self._rows:
            self._add(*key)
        return self._rows[key]

    def _add(self, application: int, placement: tuple[int, ...], batch: Batch) -> None:
        one, row = self._applications[application], len(self._rows)
        if row == len(self.table):
            self.table = np.concatenate([self.table, np.zeros_like(self.table)])
        total = sum(placement) * batch.atomic * (batch.accumulated + 1)
        self.table[row, : one.epochs] = one.gain(one.initial, total) / one.update_seconds(placement, batch)
        self._rows[application, placement, batch] = row


class Pace(Protocol):
    """How fast jobs go, and what they do after each stretch of time: some change their batch."""

    def rows(self, at: Integers) -> Integers:
        """Rows of the rates of the jobs at these positions, for the epoch that they are in."""
        ...

    def speeds(self, at: Integers) -> Floats:
        """By how much the nodes of the jobs at these positions are faster than those that were measured."""
        ...

    def trained(self, at: Integers) -> None:
        """The jobs at these positions have ended an epoch, or the time."""
        ...


class Progress:
    """What J jobs have learned by now, [J] each; changed in place.

    Attributes:
        application: numbers in ``rates``.
        data: size of each one's data over that which was measured.
        epoch: epochs that have ended.
        done: scale-invariant iterations.
        ended: seconds into the last stretch of time at which each was complete; not a number where it isn't.
    """

    def __init__(self, rates: Rates, application: Integers, data: Floats) -> None:
        self.rates, self.application, self.data = rates, application, data
        self.epoch = np.zeros(len(application), np.int64)
        self.done = np.zeros(len(application))
        self.ended = np.full(len(application), np.nan)

    def keep(self, which: Sequence[int] | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Some of the jobs, in their order."""
        for name in COLUMNS:
            setattr(self, name, getattr(self, name)[which])

    def join(self, application: Integers, data: Floats) -> None:
        """Append K jobs that have not begun: their applications [K] and sizes of data [K]."""
        new = Progress(self.rates, application, data)
        for name in COLUMNS:
            setattr(self, name, np.concatenate([getattr(self, name), getattr(new, name)]))

    @property
    def left(self) -> Floats:
        """Iterations that are left of each job, [J]."""
        ends = self.rates.ends[self.application, self.rates.epochs[self.application] - 1]
        return np.asarray(self.data * ends - self.done, np.float64)

    def train(self, pace: Pace, left: Floats, seconds: float) -> None:
        """Jobs train for what is ``left`` [J] of the last ``seconds``; 0 left: they don't.

        An epoch's end is reached after whole seconds.
        """
        left = left.copy()
        training = np.flatnonzero(left > 0)
        while training.size:
            rate = self.rates.table[pace.rows(training), self.epoch[training]] * pace.speeds(training)
            end = self.data[training] * self.rates.ends[self.application[training], self.epoch[training]]
            reached = self.done[training] + rate * left[training]
            through = reached >= end
            self.done[training[~through]] = reached[~through]
            at, end, rate = training[through], end[through], rate[through]
            left[at] -= np.rint((end - self.done[at]) / rate)
            self.done[at] = end
            self.epoch[at] += 1
            over = self.epoch[at] == self.rates.epochs[self.application[at]]
            self.ended[at[over]] = seconds - left[at[over]]
            pace.trained(training)
            training = at[~over & (left[at] > 0)]


# What is expected of jobs whose applications were measured, by those measurements.


class MeasuredOutlook(Outlook):
    """What is expected of J jobs whose applications were measured, at the batch sizes that they were submitted with.

    Args:
        applications: of the jobs, [J].
        batches: over all GPUs, [J].
        maximum: GPUs that each can use, [J].
        capacity: GPUs of each node, [N].
        progress: how far they are, [J].
    """

    def __init__(
        self,
        applications: Sequence[Application],
        batches: Sequence[int],
        maximum: Integers,
        capacity: Integers,
        progress: Progress,
    ) -> None:
        self._jobs = list(zip(applications, batches, strict=True))
        self._maximum, self._epoch, self._capacity, self._progress = maximum, progress.epoch, capacity, progress

    @override
    def update_seconds(self) -> Floats:
        gpus, node = int(self._capacity.sum()), max(1, int(self._capacity.max()))
        update_seconds = np.full((len(self._jobs), gpus + 1), np.inf)
        for row, (application, batch), most in zip(update_seconds, self._jobs, self._maximum.tolist(), strict=True):
            known = application.packed_seconds(batch, min(most, gpus), node)
            row[1 : len(known) + 1] = known
        return update_seconds

    def updates(self) -> Floats:
        """Iterations as they were measured at the batch size; in the last epoch at least one."""
        left = [
            application.updates_left(batch, epoch)
            for (application, batch), epoch in zip(self._jobs, self._epoch.tolist(), strict=True)
        ]
        return np.array(left, np.float64) * self._progress.data

    def goodput(self, gpus: Integers) -> Floats:
        """Scale-invariant iterations a second, by the gradients of the epoch that each is in."""
        seconds = self.update_seconds()[:, gpus]
        gains = [
            application.gain(application.initial, batch)[epoch]
            for (application, batch), epoch in zip(self._jobs, self._epoch.tolist(), strict=True)
        ]
        return np.asarray(np.array(gains)[:, None] / seconds, np.float64)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Read off the course of the metric as it was measured in truth."""
        applications = [application for application, _ in self._jobs]
        return metric_gains(applications, self._progress, seconds * self.goodput(gpus))

    @override
    def seconds_left(self, gpus: Integers) -> Floats:
        return seconds_by_table(self, gpus)


def metric_gains(applications: Sequence[Application], progress: Progress, iterations: Floats) -> Floats:
    """Part of its whole course by which the metric of each job improves in further scale-invariant ones, [J, R]."""
    metric_gains = np.zeros_like(iterations)
    each = zip(
        metric_gains, applications, progress.done / progress.data, iterations / progress.data[:, None], strict=True
    )
    for row, application, done, further in each:
        ends, course = application.course
        row[:] = np.interp(done + further, ends, course) - np.interp(done, ends, course)
    return metric_gains


# A cluster, interval by interval, as in Pollux's published simulator (Qiao et al., OSDI 2021).
#
# In each interval every job first trains on the nodes that it has; then the rule sees all jobs that are submitted and
# not complete. A job whose nodes change loses some seconds, and holds them.


@dataclass(frozen=True)
class Settings:
    """Of a cluster: nodes × GPUs, seconds of an interval and of a restart, GPU-seconds before a job is less urgent."""

    nodes: int = 16
    gpus: int = 4
    interval: float = 60.0
    restart_seconds: float = 30.0
    demotion: float = 16 * 3600.0


class ClusterSimulator(Pace):
    """A cluster, interval by interval: jobs of a log come, get GPUs by a rule, and train until they are complete.

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
        believed: what placement is told of that; None: nothing.
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
        self.believed: Floats | None = None
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
        """Let an interval pass: jobs train, leave and come; then the rule decides."""
        seconds = self.settings.interval
        if self.which:
            self._train(seconds)
        self.now += seconds
        self._leave()
        self._arrive()
        if self.which:
            self._decide()

    def _train(self, seconds: float) -> None:
        runs = self.jobs.allocation.any(axis=1)
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

    @override
    def rows(self, at: Integers) -> Integers:
        return self._rows[at]

    @override
    def speeds(self, at: Integers) -> Floats:
        least = np.where(self.jobs.allocation[at] > 0, self.speed, np.inf).min(axis=1)
        if not self.log_slowdown.any():
            return least
        beside = Neighbours(self.progress.application, self.log_slowdown)
        return np.asarray(least / slowdowns(beside, self.jobs.allocation)[at], np.float64)

    def trained(self, at: Integers) -> None:
        """Do nothing: batches stay as they were submitted."""

    def _arrive(self) -> None:
        first = self._came
        while self._came < len(self.log) and self.log[self._came].time <= self.now:
            self._came += 1
        new = range(first, self._came)
        if not new:
            return
        came = [self.log[number] for number in new]
        minimum, maximum = np.array([self._limits[number] for number in new], np.int64).T
        submitted, requested = np.array([job.time for job in came]), np.array([job.gpus for job in came], np.int64)
        queue = np.array([job.queue for job in came], np.int64)
        self.jobs = table.arrive(self.jobs, submitted, queue, requested, (minimum, maximum))
        numbers = np.array([self._rates.numbers[job.application] for job in came])
        self.progress.join(numbers, np.array([job.data for job in came], np.float64))
        self._rows = np.concatenate([self._rows, np.zeros(len(new), np.int64)])
        self.which += new

    def _decide(self) -> None:
        situation = self.situation()
        placement = place(situation, self._rule(situation))
        moved = np.flatnonzero((placement != self.jobs.allocation).any(axis=1) & placement.any(axis=1))
        self.jobs = table.move(self.jobs, placement, self.settings.restart_seconds)
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
        return self.situation_of(outlook)

    def situation_of(self, outlook: Outlook) -> Situation:
        """The moment, with what is expected of the jobs."""
        beside = None if self.believed is None else Neighbours(self.progress.application, self.believed)
        return Situation(self.now, self.capacity, self.jobs, outlook, self.settings.restart_seconds, neighbours=beside)

    def _row(self, at: int) -> int:
        application = self.applications[self.which[at]]
        placement = packed_first(self.jobs.allocation[at])
        return self._rates.row(int(self.progress.application[at]), placement, self._batch(application, at, placement))

    def _batch(self, application: Application, at: int, placement: tuple[int, ...]) -> Batch:
        return application.batch_of(self.log[self.which[at]].batch, sum(placement))


def packed_first(current: Integers) -> tuple[int, ...]:
    """GPUs on the nodes of one job, most first, from GPUs on all nodes, [N]."""
    return tuple(sorted((count for count in current.tolist() if count), reverse=True))


def limits(application: Application, job: Submission) -> tuple[int, int]:
    """Fewest and most GPUs that a job can use at its batch size."""
    if application.name in ONE_GPU:
        return 1, 1
    return 1, max(1, job.batch // application.smallest_local)


# Logs drawn from other logs: what came in an hour of a day came in that hour of one of them.


HOUR = 3600.0


def draw(logs: Sequence[Sequence[Submission]], load: float, generator: np.random.Generator) -> list[Submission]:
    """Jobs in order of submission, about ``load`` times as many as a log has.

    Each hour is that of a log that is drawn; whole numbers of ``load`` draw so many logs for it, and of one more each
    job comes with the chance that is left. Jobs that come together stay together, and the hours keep their course.
    """
    hours = 1 + int(max(job.time for log in logs for job in log) // HOUR)
    whole, rest = divmod(load, 1.0)
    submissions = list[Submission]()
    for hour in range(hours):
        for chance in (*[1.0] * int(whole), *([rest] if rest else [])):
            log = logs[int(generator.integers(len(logs)))]
            jobs = [job for job in log if job.time // HOUR == hour]
            submissions += [job for job in jobs if generator.random() < chance]
    submissions.sort(key=lambda job: job.time)
    return [job._replace(name=f"{job.application}-{number}") for number, job in enumerate(submissions)]
