"""The published simulator with jobs that choose their own batches, as under Pollux (Qiao et al., OSDI 2021).

A job knows what it has measured of itself: seconds of steps where it ran, and its gradients as they are now. By that it
chooses the batch of the largest goodput after each epoch and interval; and by that, rules see it. Before anything is
measured one GPU is as good as another, and a job may have twice the GPUs on which it has been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from typing_extensions import override

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Outlook, Rule, Situation
from app.kinds.cluster.throughput import Best, sizes_of
from tests.pollux.goodput import JobStatistics, Profile, best, goodput_at
from tests.pollux.measured import NCF_BATCH, ONE_GPU, Application, Batch
from tests.pollux.simulator import ClusterSimulator, Settings, Submission, metric_gains, packed_first

MOST_GPUS = 64
TINY = 1e-6


Gradient = tuple[float, float]


class Experience:
    """Of jobs of any number of applications, each by its name.

    Attributes:
        profiles: throughput, as all jobs of an application measured it.
        gradients: square and variance as one of its jobs measured them first.
        totals: progress after which its jobs were complete, of data as were measured.
    """

    def __init__(self, *, throughput: bool = True) -> None:
        self._throughput = throughput
        self.profiles: dict[str, Profile] = {}
        self.gradients: dict[str, Gradient] = {}
        self.totals: dict[str, list[float]] = {}
        self._fits: dict[str, dict[tuple[object, ...], Floats]] = {}

    def profile(self, application: str) -> Profile:
        """The one that all jobs of an application share; a new one where throughput is not told on."""
        if not self._throughput:
            return Profile(self._fits.setdefault(application, {}))
        return self.profiles.setdefault(application, Profile(self._fits.setdefault(application, {})))

    def completed(self, application: str, total: float) -> None:
        """A job of an application is complete after so much progress."""
        self.totals.setdefault(application, []).append(total)

    def remaining(self, application: str, done: float) -> float:
        """Progress that is left after ``done``, on average of those jobs that needed more.

        As much as is done where none is known that needed more: of long jobs those that have lasted long last longest.
        """
        more = [total - done for total in self.totals.get(application, ()) if total > done]
        return float(np.mean(more)) if more else done


class AdaptiveSimulator(ClusterSimulator):
    """A cluster whose jobs measure themselves, and choose the batch of the largest goodput again and again.

    ``experience`` is of jobs before: new ones begin with it, and those that end add to it; None: none has any.
    """

    def __init__(
        self,
        applications: Mapping[str, Application],
        log: Sequence[Submission],
        rule: Rule,
        settings: Settings | None = None,
        experience: Experience | None = None,
    ) -> None:
        super().__init__(applications, log, rule, settings)
        self.experience = experience
        fits: dict[str, dict[tuple[object, ...], Floats]] = {name: {} for name in applications}
        if experience is None:
            self.profiles = [Profile(fits[job.application]) for job in log]
        else:
            self.profiles = [experience.profile(job.application) for job in log]
        self._gradients = np.zeros((len(log), 2))
        self._batches = [Batch(0, 0)] * len(log)
        self._limits = [(1, 1)] * len(log)
        self._valued: dict[int, tuple[bytes, Floats]] = {}
        self._statistics: dict[tuple[str, int], tuple[Floats, Floats]] = {}

    def started(self, at: Integers) -> None:
        """Choose batches for the jobs at these positions, which are on new nodes."""
        self._set_batches(at)

    def trained(self, at: Integers) -> None:
        """Choose batches again for the jobs at these positions."""
        self._set_batches(at)

    def rows(self, at: Integers) -> Integers:
        """Rows of the rates of jobs; each first measures its step and its gradients."""
        for job in at.tolist():
            self._measure(job)
        return super().rows(at)

    def _measure(self, at: int) -> None:
        number, epoch = self.which[at], int(self.progress.epoch[at])
        application, batch = self.applications[number], self._batches[number]
        placement = packed_first(self.jobs.allocation[at])
        gpus, step = sum(placement), application.step(placement, batch.atomic)
        squared, variance = self._measured_gradients(application, gpus * batch.atomic * (batch.accumulated + 1))
        self._gradients[number] = squared[epoch], variance[epoch]
        if self.experience is not None:
            self.experience.gradients.setdefault(application.name, (float(squared[epoch]), float(variance[epoch])))
        place = len(placement), gpus, batch.atomic
        self.profiles[number].measure(place, (step.seconds, step.seconds - step.synchronising))

    def _measured_gradients(self, application: Application, total: int) -> tuple[Floats, Floats]:
        key = application.name, total
        if key not in self._statistics:
            known = application.validation
            self._statistics[key] = known.at(total, known.squared), known.at(total, known.variance)
        return self._statistics[key]

    def _arrive(self) -> None:
        first = self._came
        super()._arrive()
        if self.experience is not None:
            for number in range(first, self._came):
                self._gradients[number] = self.experience.gradients.get(self.log[number].application, (0.0, 0.0))

    def _leave(self) -> None:
        if self.experience is not None:
            for at in np.flatnonzero(~np.isnan(self.progress.ended)).tolist():
                total = float(self.progress.done[at] / self.progress.data[at])
                self.experience.completed(self.applications[self.which[at]].name, total)
        super()._leave()

    def _set_batches(self, at: Integers) -> None:
        """Choose batches for jobs on the nodes that they have, and find their rates."""
        adaptive = [job for job in at.tolist() if self._adapts(job)]
        if adaptive:
            current = self.jobs.allocation[adaptive]
            result = best(self.known(adaptive), (current > 0).sum(axis=1)[:, None], current.sum(axis=1)[:, None])
            for row, job in enumerate(adaptive):
                application, gpus = self.applications[self.which[job]], int(current[row].sum())
                parts = int(result.accumulated[row, 0]) + 1
                atomic = min(int(result.atomic[row, 0]), application.largest // (gpus * parts))
                self._batches[self.which[job]] = Batch(atomic, parts - 1)
        for job in at.tolist():
            if not self._adapts(job):
                self._batches[self.which[job]] = self._first_batch(job, int(self.jobs.allocation[job].sum()))
            self._rows[job] = self._row(job)

    def _adapts(self, at: int) -> bool:
        number = self.which[at]
        return self._informed(number) and self.log[number].application not in ONE_GPU

    def _informed(self, number: int) -> bool:
        """Whether anything that tells of this job was measured."""
        return self.profiles[number].parameters is not None and bool(self._gradients[number].any())

    def _first_batch(self, at: int, gpus: int) -> Batch:
        application = self.applications[self.which[at]]
        if application.name in ONE_GPU:
            return application.batch_of(NCF_BATCH, gpus)
        return application.batch_of(max(application.initial, application.smallest_local * gpus), gpus)

    def _batch(self, application: Application, at: int, placement: tuple[int, ...]) -> Batch:
        del application, placement
        return self._batches[self.which[at]]

    def known(self, at: Sequence[int]) -> JobStatistics:
        """What the jobs at these positions know of themselves."""
        numbers = [self.which[job] for job in at]
        ones = [self.applications[number] for number in numbers]
        limits = np.array([(one.initial, one.largest, one.smallest_local, one.largest_local) for one in ones], np.int64)
        squared, variance = self._gradients[numbers].T
        seconds = np.array([self.profiles[number].parameters for number in numbers], np.float64)
        return JobStatistics(seconds, squared, variance, *limits.T)

    def situation(self) -> Situation:
        """What the rule sees, by what each job has measured of itself; at most twice the GPUs it has been on."""
        maximum = np.array([self._most(number) for number in self.which], np.int64)
        self.jobs = self.jobs._replace(maximum=maximum)
        return self.situation_of(ProfiledOutlook(self))

    def _most(self, number: int) -> int:
        application = self.applications[number]
        if application.name in ONE_GPU:
            return 1
        most = min(max(2 * self.profiles[number].most, 1), MOST_GPUS)
        return min(most, application.largest // application.smallest_local)

    def value(self, gpus: Integers) -> Floats:
        """Goodput on so many GPUs, packed, over that on one, [J, R] for [R]; GPUs where nothing is measured."""
        value = np.tile(gpus.astype(np.float64), (len(self.which), 1))
        changed: list[int] = []
        keys: dict[int, bytes] = {}
        for at, number in enumerate(self.which):
            if not self._informed(number):
                continue
            keys[at] = self._key(number, gpus)
            if self._valued.get(number, (b"",))[0] == keys[at]:
                value[at] = self._valued[number][1]
            else:
                changed.append(at)
        if changed:
            several, node = np.maximum(gpus, 1), int(self.capacity.max(initial=1))
            goodput = self._best(changed, several, node).goodput * (gpus > 0)
            alone = [row for row, at in enumerate(changed) if not self._adapts(at)]
            if alone:
                goodput[alone] = self._alone([changed[row] for row in alone])[:, None] * (gpus == 1)
            for at, row in zip(changed, goodput, strict=True):
                value[at] = row
                self._valued[self.which[at]] = keys[at], row
        return value

    def _best(self, at: Sequence[int], gpus: Integers, node: int) -> Best:
        return best(self.known(at), sizes_of(gpus, node), gpus)

    def _alone(self, at: Sequence[int]) -> Floats:
        """Goodput of jobs that have one GPU at most, [K]."""
        batches = [self._first_batch(job, 1) for job in at]
        atomic, accumulated = np.array(batches, np.float64).T[:, :, None, None]
        one = np.ones((1, 1, 1), np.int64)
        return goodput_at(self.known(at), one, one, atomic, accumulated)[:, 0, 0]

    def remaining(self) -> Floats:
        """Samples, as many as at the initial batch, that are left of each job as expected.

        Next to none of a job of which nothing was measured: it is urgent to measure it.
        """
        known, result = self.experience or Experience(), np.full(len(self.which), TINY)
        for at, number in enumerate(self.which):
            if self._informed(number):
                application = self.applications[number]
                data = float(self.progress.data[at])
                left = known.remaining(application.name, float(self.progress.done[at]) / data) * data
                result[at] = max(left * application.initial, TINY)
        return result

    def _key(self, number: int, gpus: Integers) -> bytes:
        parameters = self.profiles[number].parameters
        assert parameters is not None
        return parameters.tobytes() + self._gradients[number].tobytes() + gpus.tobytes() + self.capacity.tobytes()


class ProfiledOutlook(Outlook):
    """What is expected of jobs by what they have measured of themselves; an update is a scale-invariant iteration.

    Only ``updates`` tells what nobody can have measured: how many iterations are left in truth.
    """

    def __init__(self, simulator: AdaptiveSimulator) -> None:
        self._simulator = simulator

    @override
    def update_seconds(self) -> Floats:
        gpus = np.arange(int(self._simulator.capacity.sum()) + 1)
        initial = np.array([self._simulator.applications[n].initial for n in self._simulator.which])
        with np.errstate(divide="ignore"):
            seconds = initial[:, None] / self.goodput(gpus)
        return np.where(gpus > self._simulator.jobs.maximum[:, None], np.inf, seconds)

    @override
    def updates(self) -> Floats:
        return self._simulator.progress.left

    @override
    def goodput(self, gpus: Integers) -> Floats:
        return self._simulator.value(gpus)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Read off the course of the metric as it was measured in truth."""
        one = self._simulator
        applications = [one.applications[number] for number in one.which]
        initial = np.array([application.initial for application in applications])
        return metric_gains(applications, one.progress, seconds * self.goodput(gpus) / initial[:, None])

    def seconds_left(self, gpus: Integers) -> Floats:
        """Divide ``AdaptiveSimulator.remaining`` by the goodput."""
        requested = np.unique(gpus)
        speed = np.take_along_axis(self.goodput(requested), np.searchsorted(requested, gpus), axis=1)
        with np.errstate(divide="ignore"):
            return self._simulator.remaining()[:, None] / speed
