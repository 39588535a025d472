"""Expected step times and remaining work of a run's jobs, from the domain model and from the run's measurements."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import experience, state
from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, HOURS, QUEUE, SAMPLES
from app.kinds.cluster.experience import ApplicationMeasurements, Experience
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.lengths import Lengths, mean_left
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.placement import Neighbours, slowdowns
from app.kinds.cluster.records import Records
from app.kinds.cluster.throughput import Batches, Course, Limits, Place, course, goodputs, seconds
from app.kinds.contract.engine import Member

# Vectorised predictions of a domain model: seconds per step and duration of jobs.
#
# Applications are positions in a list; ``UNKNOWN`` is an application without measured steps.


UNKNOWN, MOST_ROWS = -1, 4_096


class Beliefs:
    """Predictions of a domain model for many jobs at once: seconds per step, goodput, duration, arrivals. Applications
    are positions in ``applications``; ``UNKNOWN`` is one without measured steps.

    Args:
        model: domain model, possibly without applications.
        members: member workloads by application name; a step of theirs is one iteration.

    Attributes:
        model: the domain model.
        applications: names of the measured applications, then of members, [A].
    """

    def __init__(self, model: ClusterModel, members: Mapping[str, Member] = MappingProxyType({})) -> None:
        self.model, self._members = model, [*members.values()]
        self.applications = (*model.applications[: model.measured], *members)
        self._index = {name: position for position, name in enumerate(self.applications)}
        table = model.throughput
        self._centre = table._replace(log_seconds=table.log_seconds.mean(axis=0)[None])  # of all members, as one
        middle = table.local.shape[1] // 2
        self._most = max(int(table.node.prod()), 1)
        self._rows: dict[tuple[int, float], int] = {}
        self._table = np.ones((64, self._most + 1))
        self._best: dict[tuple[int, Batches, float, int], Course] = {}
        self._batch: Floats = np.maximum(table.local[:, middle], model.initial)

    def positions(self, names: NDArray[np.object_]) -> Integers:
        """Return the positions of J applications by name, [J]; ``UNKNOWN`` where the name is not found."""
        return np.array([self._index.get(name, UNKNOWN) for name in names.tolist()], np.int64)

    def neighbours(self, names: NDArray[np.object_]) -> Neighbours | None:
        """Return slowdowns on shared nodes between J jobs, by the names of their applications [J]; None if none was
        measured. Pairs are looked up by name, as applications without measured steps and members may have some."""
        if not self._pairs.any():
            return None
        known = self.model.positions
        kind = np.array([known.get(name, UNKNOWN) for name in names.tolist()], np.int64)
        return Neighbours(np.where(kind < len(self._pairs) - 1, kind, UNKNOWN), self._pairs)

    @cached_property
    def _pairs(self) -> Floats:
        """Natural logarithms of slowdowns between B applications, [B + 1, B + 1]; last row and column: any other."""
        known = self.model.interference
        pairs = np.full((len(known.log_slowdown) + 1,) * 2, known.usual[0])
        pairs[:-1, :-1] = known.log_slowdown
        return pairs

    def step_seconds(self, application: Integers, batch: Floats, gpus: Integers) -> Floats:
        """Return seconds per step of J jobs on K numbers of GPUs each, packed on as few nodes as possible, [J, K].

        Args:
            application: positions, [J]; ``UNKNOWN``: 1 second over the number of GPUs.
            batch: samples per step over all GPUs, [J]; NaN: the usual batch.
            gpus: numbers of GPUs, [J, K].
        """
        if len(self._rows) > MOST_ROWS:
            self._rows.clear()
        each = [self._row(*key) for key in zip(application.tolist(), np.nan_to_num(batch).tolist(), strict=True)]
        return self._table[np.array(each, np.int64)[:, None], np.minimum(gpus, self._most)]

    def _row(self, application: int, batch: float) -> int:
        """Return the row of the cache with the step times of an application at a batch in samples (0: the usual batch).
        A missing row is computed."""
        key = application, batch
        if key not in self._rows:
            if len(self._rows) == len(self._table):
                self._table = np.concatenate([self._table, np.ones_like(self._table)])
            self._table[len(self._rows), 1:] = self._seconds(application, batch)
            self._rows[key] = len(self._rows)
        return self._rows[key]

    def _seconds(self, application: int, batch: float) -> Floats:
        """Return an application's seconds per step on 1, 2, …, G GPUs, [G], where G is the number of GPUs of the
        model's cluster. ``batch`` is in samples per step over all GPUs; 0: the application's usual batch."""
        gpus = np.arange(1, self._most + 1)
        if application == UNKNOWN:
            return np.asarray(1.0 / gpus, np.float64)
        if application >= self.model.measured:
            # Member's seconds per iteration on G numbers of GPUs ``gpus`` [G], [G]; infinite on fewer than its least
            member = self._members[application - self.model.measured]
            place = np.searchsorted(member.amounts, gpus, side="right") - 1
            return np.where(place >= 0, member.seconds[np.maximum(place, 0)], np.inf)
        own = batch or self._batch[application]
        return seconds(self._centre, application, Place(gpus, -(-gpus // self._centre.node[0]), own / gpus))

    def goodput(self, application: int, batches: Batches, noise_scale: float, total: int) -> Course:
        """Return an application's goodput at the best batch, by number of GPUs up to ``total``; results are cached.

        Args:
            application: position of an application with measured steps.
            batches: limits of the batch, in samples.
            noise_scale: gradient noise scale, in samples; infinite: unknown.
            total: GPUs of the cluster.
        """
        key = application, batches, noise_scale, total
        if key not in self._best:
            if len(self._best) > MOST_ROWS:
                self._best.clear()
            self._best[key] = course(partial(self.times, application), batches, noise_scale, total)
        return self._best[key]

    def times(self, application: int, gpus: Integers, local: Floats) -> tuple[Floats, Floats]:
        """Return seconds of computing (as on one GPU) and of the whole step, for R numbers of GPUs, [R, K] each.
        ``gpus`` is [R, 1], ``local`` the samples per GPU, [R, K]."""
        one, node = np.ones((1, 1), np.int64), self._centre.node[0]
        alone, whole = (seconds(self._centre, application, Place(on, -(-on // node), local)) for on in (one, gpus))
        return np.minimum(alone, whole), whole

    @cached_property
    def log(self) -> Floats:
        """The n past jobs with the columns of ``Arrivals.jobs``, [n, 7]. An unknown duration in seconds, or number of
        samples, is derived from the other by the predicted step time."""
        jobs = self.model.arrivals.jobs
        jobs = np.column_stack([jobs, np.full((len(jobs), SAMPLES + 1 - jobs.shape[1]), np.nan)])
        for application in range(self.model.measured):
            own = np.flatnonzero(jobs[:, APPLICATION] == application)
            step = self.step_seconds(
                np.array([application]), np.array([np.nan]), jobs[None, own, GPUS].astype(np.int64)
            )
            rate, lengths = self._batch[application] / step[0], jobs[own][:, [DURATION, SAMPLES]]
            other = np.column_stack([lengths[:, 1] / rate, lengths[:, 0] * rate])
            jobs[own[:, None], [DURATION, SAMPLES]] = np.where(np.isnan(lengths), other, lengths)
        return jobs

    def needed(self, application: str) -> list[tuple[float, float]]:
        """Return the samples that each finished job of an application needed, and its data size (0: unknown). The list
        is empty if none is known, also for an unknown application."""
        return self._needed.get(application, [])

    @cached_property
    def _needed(self) -> dict[str, list[tuple[float, float]]]:
        values = dict[str, list[tuple[float, float]]]()
        for name, position in self.model.positions.items():
            own = self.log[self.log[:, APPLICATION] == position][:, [SAMPLES, DATA]]
            values[name] = [(one, np.nan_to_num(size)) for one, size in own.tolist() if np.isfinite(one)]
        return values

    def iterations(self, application: Integers) -> Floats:
        """Return the number of iterations of each of J jobs that is a run of a member, [J]; NaN for other jobs."""
        every = [np.nan] * self.model.measured + [float(one.iterations) for one in self._members] + [np.nan]
        return np.array(every)[application]

    def usual_seconds(self, application: Integers, data: Floats | None = None) -> Floats:
        """Return the median duration in seconds of each of J jobs' applications, on the GPUs they requested, [J].

        Args:
            application: position of each job's application, [J].
            data: data sizes, by which durations scale as in the log, [J]; None: the usual size.
        """
        scale = 1.0 if data is None else self.lengths.scale(application, data)
        return np.asarray(self.lengths.usual[application] * scale, np.float64)

    def seconds_left(self, application: Integers, data: Floats, ran: Floats) -> Floats:
        """Return expected remaining seconds, [J], of J jobs that have run for ``ran`` seconds and state no number of
        iterations. ``application`` has positions, ``data`` the data sizes (NaN: unknown), [J] each."""
        scale = self.lengths.scale(application, data)
        return np.asarray(scale * self.lengths.remaining_seconds(application, ran / scale), np.float64)

    @cached_property
    def lengths(self) -> Lengths:
        """Durations of past jobs by position in ``applications``; the log's own positions are translated by name."""
        jobs, names = self.log.copy(), np.array([*self.model.applications, ""], object)
        jobs[:, APPLICATION] = self.positions(names)[jobs[:, APPLICATION].astype(np.int64)]
        return Lengths(jobs, len(self.applications))

    def coming(self, second_of_day: float) -> float:
        """Return the GPUs that new jobs are expected to request within an hour from a second of the day (UTC)."""
        return float(self.coming_at(np.array([second_of_day]))[0])

    def coming_at(self, second_of_day: Floats) -> Floats:
        """Return the GPUs that new jobs are expected to request within an hour from each second of the day (UTC), same
        shape."""
        course = np.append(self._requested_per_hour, self._requested_per_hour[0])
        return np.interp(second_of_day / HOUR_SECONDS % HOURS, np.arange(HOURS + 1), course)

    @cached_property
    def mean_asked(self) -> Floats:
        """Mean number of GPUs that jobs of each of Q queues request, [Q]; 0 without past jobs."""
        jobs, queues = self.model.arrivals.jobs, len(self.model.arrivals.rate)
        if not len(jobs):
            return np.zeros(queues)
        own = [jobs[jobs[:, QUEUE] == queue, GPUS] for queue in range(queues)]
        return np.array([float((some if len(some) else jobs[:, GPUS]).mean()) for some in own])

    @cached_property
    def _requested_per_hour(self) -> Floats:
        """GPUs requested by new jobs per hour, by hour of the day (UTC), [24]."""
        return np.asarray(self.mean_asked @ self.model.arrivals.rate, np.float64)


# Outlook of a live cluster's jobs: speed on numbers of GPUs, and remaining work.


GPU_HOUR = 3600.0
NO_LIMIT = 10**9
TINY, LEAST = 1e-6, 0.05
"""Lower bounds of the remaining work: in its own unit, and in iterations."""
PARTS = 8
"""Parts of the remaining work, each with a speed of its own, in the expected time to completion."""
LEAST_NOISE, MOST_NOISE = 1e-3, 1e15  # bounds of noise scales in samples, which jobs may report as 0


def _relative_sizes(data: Floats, usual: float) -> Floats:
    """Return n data sizes over the size ``usual``, [n]; 1 where either is unknown (NaN or 0)."""
    return np.where((data > 0) & (usual > 0), data / usual, 1.0)


class BelievedOutlook:
    """``Outlook`` of the J jobs of a live cluster.

    A job's work is counted in samples at the statistical efficiency of its initial batch where possible; its batch is
    the one of largest goodput if it may choose, else as reported. Step times come from the domain model, else from
    measurements in the run; else work is in GPU-seconds and GPUs share it evenly.
    Remaining work follows from a job's iterations if it reports them; else from past jobs of its application that
    needed more, and is at least that of the application's most advanced job; else it equals the work done, and at least
    a GPU-hour.

    Args:
        beliefs: predictions of the domain model.
        jobs: table of the J jobs present.
        records: reported settings and measurements of the same jobs.
        gpus: GPUs of the cluster, G.
        shown: measurements in the run by application; None: none.

    Attributes:
        neighbours: slowdowns between the jobs on shared nodes; None: unknown.
    """

    def __init__(
        self,
        beliefs: Beliefs,
        jobs: Jobs,
        records: Records,
        gpus: int,
        *,
        shown: Experience | None = None,
    ) -> None:
        self._beliefs, self._jobs, self._records, self._gpus = beliefs, jobs, records, gpus
        self._shown = shown or {}
        self._application = beliefs.positions(records.application)
        self.neighbours = beliefs.neighbours(records.application)
        self._batch = np.where(records.batch > 0, records.batch, np.nan).astype(np.float64)

    def update_seconds(self) -> Floats:
        """Return seconds per unit of work of J jobs on 0 to G GPUs, [J, G + 1]; infinite where a job can't use them."""
        every = np.broadcast_to(np.arange(self._gpus + 1), (len(self._application), self._gpus + 1))
        return self._seconds(every)

    def updates(self) -> Floats:
        """Return the remaining units of work (samples, steps or GPU-seconds) of each of J jobs, [J]."""
        return self._remaining_work

    def goodput(self, gpus: Integers) -> Floats:
        """Return units of work per second, [J, R], of J jobs on each of R numbers of GPUs, ``gpus`` [R]; 0 for numbers
        that a job can't use."""
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        return np.asarray(1.0 / self._seconds(every), np.float64)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Return the expected fall, 0 to 1, of J jobs' normalised loss within ``seconds`` on R numbers of GPUs
        ``gpus``, [J, R]. The loss after k iterations is taken as 1/(k + 1), the convergence rate of first-order
        methods. For jobs without a number of iterations, one iteration is ``seconds`` on the GPUs requested."""
        records, jobs = self._records, self._jobs
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        speed = 1.0 / (
            self._seconds(every) * self._remaining_work[:, None]
        )  # fraction of the remaining work per second
        counts = np.isfinite(records.iterations)
        work = self._seconds(jobs.requested[:, None])[:, 0] * self._remaining_work
        done = np.where(counts, records.iteration, jobs.running / seconds)
        left = np.where(counts, np.maximum(records.iterations - records.iteration, 0.0), work / seconds)
        after = done[:, None] + left[:, None] * np.minimum(speed * seconds, 1.0)
        return np.asarray(1.0 / (done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    def seconds_left(self, gpus: Integers) -> Floats:
        """Return seconds to completion, [J, K], of J jobs on their K numbers of GPUs, ``gpus`` [J, K]; infinite for
        numbers that a job can't use."""
        return np.asarray(self._seconds(gpus) * self._remaining_work[:, None], np.float64)

    def expected_seconds(self, gpus: Integers) -> Floats:
        """Return expected seconds to completion, [J, K], of J jobs that keep their K numbers of GPUs, ``gpus`` [J, K];
        infinite for numbers that a job can't use.

        ``seconds_left``, by which rules compare jobs, takes present speeds. Here the gradient noise scale goes on from
        a job's present one as it did, by part of the run, in past jobs of its application: as it grows, larger batches
        lose less, and a job that chooses its batch speeds up."""
        seconds, done, model = self.seconds_left(gpus), np.nan_to_num(state.done(self._records)), self._beliefs.model
        known = np.flatnonzero(np.isfinite(model.noise_scale[: model.measured]).all(axis=1))
        grows = self._sampled & self._chooses & np.isin(self._application, known) & np.isfinite(seconds).any(axis=1)
        present = np.array([self._noise_scale(at) if grows[at] else np.inf for at in range(len(grows))])
        several = np.clip(gpus, 1, self._gpus)
        for application in np.unique(self._application[grows & np.isfinite(present)]).tolist():
            usual = np.log(np.maximum(model.noise_scale[application], TINY))
            at = np.flatnonzero((self._application == application) & np.isfinite(present))
            begun = (done[at] / (done[at] + self._remaining_work[at]))[:, None]
            points = np.append(begun, begun + (1.0 - begun) * (np.arange(PARTS) + 0.5) / PARTS, axis=1)
            course = np.interp(points, (np.arange(len(usual)) + 0.5) / len(usual), usual)
            start = np.log(np.clip(present[at], LEAST_NOISE, MOST_NOISE))[:, None]
            scales = np.clip(np.exp(course - course[:, :1] + start), LEAST_NOISE, MOST_NOISE)
            limits = Limits(*np.array([self._limits(job) for job in at.tolist()], np.int64).T)
            speeds = np.maximum(goodputs(partial(self._beliefs.times, application), limits, scales, several[at]), TINY)
            seconds[at] *= (speeds[:, :1] / speeds[:, 1:]).mean(axis=1)
        return seconds

    def worth(self, power: float) -> Floats:
        """Return a weight of each of J jobs' completion time, [J]: relative data size to the power of ``power``; 1:
        unknown."""
        sized = self._beliefs.lengths.relative_size(self._application, self._records.data)
        return np.asarray(sized**power, np.float64)

    @cached_property
    def times_known(self) -> NDArray[np.bool_]:
        """Whether the step times of each of J jobs are known, from domain model or measurements in the run, [J]."""
        return np.asarray((self._application != UNKNOWN) | self._sampled, np.bool_)

    @cached_property
    def maximum(self) -> Integers:
        """Most GPUs that each of J jobs may have, [J]. An application without measured steps may have at most twice the
        GPUs it was measured on in this run, and at least those requested, so that a trial on more GPUs costs other jobs
        little."""
        tried = np.array([0 if one is None else 2 * one.most for one in self._experience], np.int64)
        most = np.where(self._application != UNKNOWN, self._jobs.maximum, np.maximum(self._jobs.requested, tried))
        return np.asarray(np.minimum(self._jobs.maximum, most), np.int64)

    def batches(self, at: Integers, gpus: Integers) -> list[int | None]:
        """Return the best batch, in samples over all GPUs, of each of K jobs at positions ``at`` on ``gpus`` GPUs, [K]
        each. None if the job's batch is fixed, if its noise scale is unknown, or if no batch is allowed."""
        batches = list[int | None]()
        for job, count in zip(at.tolist(), gpus.tolist(), strict=True):
            course = self._courses[job] if np.isfinite(self._noise_scale(job)) else None
            batches.append(None if course is None or not self._chooses[job] else course.batch_at(count) or None)
        return batches

    @property
    def _chooses(self) -> NDArray[np.bool_]:
        return np.asarray(self._records.batch_maximum > 0, np.bool_)

    @cached_property
    def _experience(self) -> list[ApplicationMeasurements | None]:
        """Measurements in the run of each job's application; None without measured steps."""
        results = [self._shown.get(one) for one in self._records.application.tolist()]
        return [one if one is not None and one.places else None for one in results]

    @cached_property
    def _courses(self) -> list[Course | None]:
        """Goodput by number of GPUs of each job whose work is counted in samples; None for other jobs."""
        of_model = (self._application != UNKNOWN) & (self._application < self._beliefs.model.measured) & self._chooses
        shown = np.array([one is not None for one in self._experience], np.bool_)
        of_run = (self._application == UNKNOWN) & shown & (self._records.batch > 0)
        courses: list[Course | None] = [None] * len(shown)
        for at in np.flatnonzero(of_model | of_run).tolist() if self._gpus else ():
            course = self._course(at)
            legal = np.clip([self._jobs.minimum[at], self._jobs.maximum[at]], 1, self._gpus)
            courses[at] = course if course.at(np.arange(legal[0], legal[1] + 1)).any() else None
        return courses

    def _course(self, at: int) -> Course:
        """Return the goodput by number of GPUs of the job at position ``at``, relative to the application's reference
        batch. Up to the largest number of GPUs measured it comes from the run's measurements; beyond, it is the domain
        model's curve, scaled to match."""
        application, shown, noise = int(self._application[at]), self._experience[at], self._noise_scale(at)
        own = None if shown is None else self._measured_goodput(at, shown, noise)
        if application == UNKNOWN and own is not None:
            return own
        course = self._beliefs.goodput(application, self._limits(at), experience.round_noise_scale(noise), self._gpus)
        if own is None or shown is None:
            return course
        most = min(shown.most, self._gpus)
        here, there = float(own.at(np.array(most))), float(course.at(np.array(most)))
        few, scale = course.gpus <= most, here / there if here > 0 and there > 0 else 1.0
        goodput = np.where(few, own.goodput, scale * course.goodput)
        return Course(course.gpus, goodput, np.where(few, own.batch, course.batch))

    def _measured_goodput(self, at: int, shown: ApplicationMeasurements, noise: float) -> Course:
        cluster = max(1, int(self._beliefs.model.throughput.node[0])), self._gpus
        limits, batch = self._limits(at), int(self._records.batch[at])
        if self._chooses[at]:
            goodput, worth = experience.goodput(shown, limits, noise, cluster), 1.0
            if np.isfinite(noise):
                worth = (shown.initial + noise) / (limits.initial + noise)
        else:
            goodput = experience.goodput(shown, limits._replace(initial=batch, largest=batch), np.inf, cluster)
            worth = experience.rate(shown.initial, batch, batch, noise)
        return goodput._replace(goodput=goodput.goodput * worth)

    def _limits(self, at: int) -> Batches:
        one = self._records
        least, most = int(one.gpu_batch_minimum[at]) or 1, int(one.gpu_batch_maximum[at]) or NO_LIMIT
        return Batches(int(one.batch_initial[at]), int(one.batch_maximum[at]), least, most)

    def _noise_scale(self, at: int) -> float:
        """Return a job's gradient noise scale in samples: its own, else the run's first, else the model's; infinite:
        unknown."""
        own, application = float(self._records.noise_scale[at]), int(self._application[at])
        if np.isfinite(own):
            return own
        shown = self._experience[at]
        if shown is not None and np.isfinite(shown.noise_scale):
            return shown.noise_scale
        if 0 <= application < self._beliefs.model.measured:
            return float(np.nan_to_num(self._beliefs.model.noise_scale[application, 0], nan=np.inf))
        return np.inf

    @cached_property
    def _remaining_work(self) -> Floats:
        """Remaining work of each of J jobs, in samples if ``_sampled``, else in steps, [J]; at least ``TINY``."""
        return np.asarray(np.maximum(np.where(self._sampled, self._samples_left, self._steps_left), TINY), np.float64)

    @cached_property
    def _sampled(self) -> NDArray[np.bool_]:
        """Whether the work of each of J jobs is counted in samples, [J]."""
        return np.array([course is not None for course in self._courses], np.bool_)

    @cached_property
    def _steps_left(self) -> Floats:
        """Remaining steps of each of J jobs, at least 1, [J]; GPU-seconds for an unknown application. They follow
        from the iterations left at the measured pace, if both are known; else, for jobs that are runs of another
        workload, from the iterations left; else from the application's usual duration, or from running time."""
        records, jobs = self._records, self._jobs
        reference = np.where(np.isfinite(records.pace), records.paced_on, jobs.requested)
        step = self._beliefs.step_seconds(self._application, self._batch, reference[:, None])[:, 0]
        step = step * self._slower
        usual = self._beliefs.usual_seconds(self._application, records.data)
        whole = self._beliefs.iterations(self._application)
        left = np.where(np.isfinite(records.iterations), records.iterations, whole) - records.iteration
        measured = left / records.pace
        expected = np.where(np.isfinite(whole), left, self._unmeasured(usual) / step)
        return np.asarray(np.maximum(np.where(np.isfinite(measured), measured / step, expected), 1.0), np.float64)

    @cached_property
    def _samples_left(self) -> Floats:
        """Remaining samples of each of J jobs, [J]; 0 for jobs whose work is not counted in samples."""
        records, samples_left = self._records, np.zeros(len(self._application))
        if not self._sampled.any():
            return samples_left
        done = np.nan_to_num(state.done(records))
        alone = np.array([0.0 if one is None else float(one.goodput[1] or one.goodput.max()) for one in self._courses])
        groups = dict[str, list[int]]()
        for at in np.flatnonzero(self._sampled).tolist():
            groups.setdefault(records.application[at], []).append(at)
        for own, rows in groups.items():
            each, shown = np.array(rows, np.int64), self._shown.get(own)
            known = np.array([*(shown.needed if shown else ()), *self._beliefs.needed(own)]).reshape(-1, 2)
            usual = float(np.median(known[known[:, 1] > 0, 1])) if (known[:, 1] > 0).any() else np.nan
            totals = np.sort(known[:, 0] / _relative_sizes(known[:, 1], usual))
            size = _relative_sizes(records.data[each], usual)
            part = done[each] / size
            samples_left[each] = mean_left(totals, part, np.maximum(part, GPU_HOUR * alone[each] / size))
            samples_left[each] = np.maximum(samples_left[each], part.max() - part) * size
        return self._by_iterations(samples_left, done)

    def _by_iterations(self, left: Floats, done: Floats) -> Floats:
        """Return remaining samples, [J]: iterations left × samples per iteration where a job reports iterations, else
        ``left``. ``left`` and ``done`` are samples, [J] each."""
        records = self._records
        reporting = (records.iteration > 0) & np.isfinite(records.iterations)
        rest = np.maximum(records.iterations - records.iteration, 0.0)
        paced = [
            0.0 if one is None else float(one.at(gpus))
            for one, gpus in zip(self._courses, records.paced_on, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(records.done_then > 0, records.done_then / records.iteration, paced / records.pace)
            gone = np.where(records.done_then > 0, done - records.done_then, 0.0)
            counted = np.maximum(each * rest - gone, LEAST * each)
        return np.where(reporting & (each > 0), counted, left)

    @property
    def _slower(self) -> Floats:
        """Factor by which neighbours slowed each of J jobs' steps while its pace was measured, [J]; 1: unknown."""
        if self.neighbours is None:
            return np.ones(len(self._application))
        there = np.isfinite(self._records.pace) & (self._records.paced_on == self._jobs.gpus)
        return np.where(there, slowdowns(self.neighbours, self._jobs.allocation), 1.0)

    def _unmeasured(self, usual: Floats) -> Floats:
        """Return the remaining seconds of J jobs without a measured pace, on the GPUs they requested, [J]. They follow
        from completed iterations and the ``usual`` duration in seconds [J], else from running time."""
        records = self._records
        done = np.where(np.isfinite(records.iterations), records.iteration / records.iterations, np.nan)
        rest = self._beliefs.seconds_left(self._application, records.data, self._jobs.running)
        return np.where(np.isfinite(done), usual * np.clip(1.0 - done, 0.0, 1.0), rest)

    def _seconds(self, gpus: Integers) -> Floats:
        """Return seconds per unit of work, [J, K], of J jobs on their K numbers of GPUs, ``gpus`` [J, K]; infinite for
        numbers that a job can't use."""
        several = np.clip(gpus, 1, self._gpus)
        seconds = self._beliefs.step_seconds(self._application, self._batch, several)
        with np.errstate(divide="ignore"):
            for at in np.flatnonzero(self._sampled).tolist():
                course = self._courses[at]
                assert course is not None  # noqa: S101 - jobs counted in samples have a course
                seconds[at] = 1.0 / course.at(several[at])
        return np.where((gpus > 0) & (gpus <= self.maximum[:, None]), seconds, np.inf)
