"""What is expected of the jobs of a run: beliefs of the model and of the run, as one table for decisions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster import experience, state
from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, HOURS, QUEUE, SAMPLES
from app.kinds.cluster.experience import Experience, Shown
from app.kinds.cluster.jobs import Floats, Integers, Jobs
from app.kinds.cluster.lengths import Lengths, mean_left
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.placement import Neighbours, slowdowns
from app.kinds.cluster.records import Records
from app.kinds.cluster.throughput import Batches, Course, Place, course, seconds
from app.kinds.contract.engine import Member

# What decisions ask of a domain model: how long steps of jobs take, and how long jobs last, of many jobs at once.
#
# Applications are told by position; ``UNKNOWN`` is one whose steps weren't measured.


UNKNOWN, MOST_ROWS = -1, 4_096


class Beliefs:
    """What a domain model expects of jobs: seconds of their steps, and how long they last, of many jobs at once.

    Args:
        model: some of whose applications are measured.
        members: workloads whose domain models tell of an application, by name; a step of theirs is an iteration.

    Attributes:
        applications: names of those that were measured, then of members, [A].
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
        """Where applications stand, by name, [J]."""
        return np.array([self._index.get(name, UNKNOWN) for name in names.tolist()], np.int64)

    def neighbours(self, names: NDArray[np.object_]) -> Neighbours | None:
        """What jobs of these applications [J] do to one another; None where no such steps were measured.

        They are told by name: pairs are known of some that have no position, and of members.
        """
        if not self._pairs.any():
            return None
        known = self.model.positions
        kind = np.array([known.get(name, UNKNOWN) for name in names.tolist()], np.int64)
        return Neighbours(np.where(kind < len(self._pairs) - 1, kind, UNKNOWN), self._pairs)

    @cached_property
    def _pairs(self) -> Floats:
        """Logs of slow-downs, the last of an application that isn't known, [B + 1, B + 1]."""
        known = self.model.interference
        found = np.full((len(known.log_slowdown) + 1,) * 2, known.usual[0])
        found[:-1, :-1] = known.log_slowdown
        return found

    def step_seconds(self, application: Integers, batch: Floats, gpus: Integers) -> Floats:
        """Seconds of a step on GPUs that fill as few nodes as they can, [J, K]; J applications and batches.

        A batch that isn't a number is the usual one. Of an application that isn't known, GPUs share the work evenly.
        """
        if len(self._rows) > MOST_ROWS:
            self._rows.clear()
        each = [self._row(*key) for key in zip(application.tolist(), np.nan_to_num(batch).tolist(), strict=True)]
        return self._table[np.array(each, np.int64)[:, None], np.minimum(gpus, self._most)]

    def _row(self, application: int, batch: float) -> int:
        """Where the seconds of an application at a batch stand in the table; 0: the usual one."""
        key = application, batch
        if key not in self._rows:
            if len(self._rows) == len(self._table):
                self._table = np.concatenate([self._table, np.ones_like(self._table)])
            self._table[len(self._rows), 1:] = self._seconds(application, batch)
            self._rows[key] = len(self._rows)
        return self._rows[key]

    def _seconds(self, application: int, batch: float) -> Floats:
        """On 1 to all GPUs, [G]."""
        gpus = np.arange(1, self._most + 1)
        if application == UNKNOWN:
            return np.asarray(1.0 / gpus, np.float64)
        if application >= self.model.measured:
            return member_seconds(self._members[application - self.model.measured], gpus)
        own = batch or self._batch[application]
        return seconds(self._centre, application, Place(gpus, -(-gpus // self._centre.node[0]), own / gpus))

    def goodput(self, application: int, batches: Batches, noise_scale: float, total: int) -> Course:
        """Samples a second of a measured application, at the best batch on each number of GPUs up to ``total``."""
        key = application, batches, noise_scale, total
        if key not in self._best:
            if len(self._best) > MOST_ROWS:
                self._best.clear()
            self._best[key] = course(lambda *at: self._times(application, *at), batches, noise_scale, total)
        return self._best[key]

    def _times(self, application: int, gpus: Integers, local: Floats) -> tuple[Floats, Floats]:
        """Seconds of computing, which are those of one GPU, and of the whole step."""
        one, node = np.ones((1, 1), np.int64), self._centre.node[0]
        alone, whole = (seconds(self._centre, application, Place(on, -(-on // node), local)) for on in (one, gpus))
        return np.minimum(alone, whole), whole

    @cached_property
    def log(self) -> Floats:
        """Jobs of the log as ``Arrivals.jobs`` has them; seconds that a job ran and samples tell of one another."""
        jobs = self.model.arrivals.jobs
        jobs = np.column_stack([jobs, np.full((len(jobs), SAMPLES + 1 - jobs.shape[1]), np.nan)])
        for application in range(self.model.measured):
            own = np.flatnonzero(jobs[:, APPLICATION] == application)
            step = self.step_seconds(
                np.array([application]), np.array([np.nan]), jobs[None, own, GPUS].astype(np.int64)
            )
            rate, told = self._batch[application] / step[0], jobs[own][:, [DURATION, SAMPLES]]
            other = np.column_stack([told[:, 1] / rate, told[:, 0] * rate])
            jobs[own[:, None], [DURATION, SAMPLES]] = np.where(np.isnan(told), other, told)
        return jobs

    def needed(self, application: str) -> list[tuple[float, float]]:
        """Samples that jobs of an application needed until they finished, and the sizes of their data, 0: unknown."""
        return self._needed.get(application, [])

    @cached_property
    def _needed(self) -> dict[str, list[tuple[float, float]]]:
        found = dict[str, list[tuple[float, float]]]()
        for name, position in self.model.positions.items():
            own = self.log[self.log[:, APPLICATION] == position][:, [SAMPLES, DATA]]
            found[name] = [(one, np.nan_to_num(size)) for one, size in own.tolist() if np.isfinite(one)]
        return found

    def iterations(self, application: Integers) -> Floats:
        """Of a job, of which a step is one; NaN of those that are no members' runs, [J]."""
        every = [np.nan] * self.model.measured + [float(one.iterations) for one in self._members] + [np.nan]
        return np.array(every)[application]

    def usual_seconds(self, application: Integers, data: Floats | None = None) -> Floats:
        """Median seconds that jobs of each application trained on the GPUs that they asked for, [J].

        Args:
            application: of each job, [J].
            data: sizes of their data, by which seconds scale as they did in the log, [J]; None: usual ones.
        """
        scale = 1.0 if data is None else self.lengths.scale(application, data)
        return np.asarray(self.lengths.usual[application] * scale, np.float64)

    def seconds_left(self, application: Integers, data: Floats, ran: Floats) -> Floats:
        """Seconds that are left of jobs that have trained for ``ran`` [J] and tell nothing of their end, [J]."""
        scale = self.lengths.scale(application, data)
        return np.asarray(scale * self.lengths.left(application, ran / scale), np.float64)

    @cached_property
    def lengths(self) -> Lengths:
        """How long jobs of each application train; the log's are told by name, for members stand at positions of it."""
        jobs, names = self.log.copy(), np.array([*self.model.applications, ""], object)
        jobs[:, APPLICATION] = self.positions(names)[jobs[:, APPLICATION].astype(np.int64)]
        return Lengths(jobs, len(self.applications))

    def coming(self, second_of_day: float) -> float:
        """GPUs that are expected to be asked for within an hour, from a time of day on, UTC."""
        return float(self.coming_at(np.array([second_of_day]))[0])

    def coming_at(self, second_of_day: Floats) -> Floats:
        """GPUs that are expected to be asked for within an hour, from each of some times of day on, UTC."""
        course = np.append(self._asked, self._asked[0])
        return np.interp(second_of_day / HOUR_SECONDS % HOURS, np.arange(HOURS + 1), course)

    @cached_property
    def mean_asked(self) -> Floats:
        """GPUs that a job of each queue asks for, [Q]."""
        jobs, queues = self.model.arrivals.jobs, len(self.model.arrivals.rate)
        if not len(jobs):
            return np.zeros(queues)
        own = [jobs[jobs[:, QUEUE] == queue, GPUS] for queue in range(queues)]
        return np.array([float((some if len(some) else jobs[:, GPUS]).mean()) for some in own])

    @cached_property
    def _asked(self) -> Floats:
        """GPUs that are asked for in each hour of the day, [24]."""
        return np.asarray(self.mean_asked @ self.model.arrivals.rate, np.float64)


def member_seconds(member: Member, gpus: Integers) -> Floats:
    """Of an iteration of a member on GPUs, [G]: those beyond what it can use are idle; infinite on too few."""
    place = np.searchsorted(member.amounts, gpus, side="right") - 1
    return np.where(place >= 0, member.seconds[np.maximum(place, 0)], np.inf)


# What is expected of the jobs of a live cluster: how fast they train on GPUs, and how much is left of each.


GPU_HOUR = 3600.0
NO_LIMIT = 10**9
TINY, LEAST = 1e-6, 0.05
"""Of what is left: in its unit, and of an iteration."""


def _sized(data: Floats, usual: float) -> Floats:
    """Sizes of data over the usual one; 1 where either isn't known, [n]."""
    return np.where((data > 0) & (usual > 0), data / usual, 1.0)


class BelievedOutlook:
    """The ``Outlook`` of J jobs of a live cluster.

    What a job gets done is counted in samples at their efficiency (``counting``) where that can be: its batch is the
    one of the largest goodput if it chooses it, else as reported. Seconds of steps are the domain model's; of an
    application that this doesn't know, what was measured in the run; of which there is nothing, GPUs share the work
    evenly, and it is counted in GPU-seconds.

    What is left: of a job that tells its iterations, by what it has done for those that are over; of others by those
    of its application that needed more, at least as much as the one of them that is furthest. Of which nothing is
    known as much is left as is done, and a GPU-hour.

    Args:
        beliefs: of the domain model; of one that is unfitted where there is none.
        jobs: that are there, [J].
        records: what was reported of them, [J].
        gpus: all there are, G.
        shown: what jobs have shown in the run.

    Attributes:
        neighbours: what the jobs do to one another on shared nodes; None: nothing is known of it.
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
        """Seconds of a unit of what is left on 0 to G GPUs, [J, G + 1]; infinite where a job can't use so many."""
        every = np.broadcast_to(np.arange(self._gpus + 1), (len(self._application), self._gpus + 1))
        return self._seconds(every)

    def updates(self) -> Floats:
        """What is left of each job in its unit, [J]."""
        return self._left

    def goodput(self, gpus: Integers) -> Floats:
        """Progress a second on so many GPUs, in the unit of ``updates``, [J, R] for [R]."""
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        return np.asarray(1.0 / self._seconds(every), np.float64)

    def loss_reduction(self, gpus: Integers, seconds: float) -> Floats:
        """Part of its fall that the loss makes in ``seconds``, [J, R]: it is 1/(k + 1) after k iterations, which is how
        first-order methods converge.

        Of a job that counts no iterations, k is intervals of so many seconds on the GPUs that it asked for.
        """
        records, jobs = self._records, self._jobs
        every = np.broadcast_to(gpus, (len(self._application), len(gpus)))
        speed = 1.0 / (self._seconds(every) * self._left[:, None])  # parts of what is left a second
        counts = np.isfinite(records.iterations)
        asked = self._seconds(jobs.asked[:, None])[:, 0] * self._left
        done = np.where(counts, records.iteration, jobs.running / seconds)
        left = np.where(counts, np.maximum(records.iterations - records.iteration, 0.0), asked / seconds)
        after = done[:, None] + left[:, None] * np.minimum(speed * seconds, 1.0)
        return np.asarray(1.0 / (done[:, None] + 1.0) - 1.0 / (after + 1.0), np.float64)

    def seconds_left(self, gpus: Integers) -> Floats:
        """Seconds until each job is finished on so many GPUs, [J, K]; infinite where it can't be."""
        return np.asarray(self._seconds(gpus) * self._left[:, None], np.float64)

    def worth(self, power: float) -> Floats:
        """What each job's completion time is worth by a power of its data over the usual of its application, [J]."""
        sized = self._beliefs.lengths.sized(self._application, self._records.data)
        return np.asarray(sized**power, np.float64)

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Of which jobs seconds of steps are known, [J]."""
        return np.asarray((self._application != UNKNOWN) | self._sampled, np.bool_)

    @cached_property
    def maximum(self) -> Integers:
        """GPUs that each job may have, [J].

        An application that the domain model doesn't know is tried on twice as many as it was measured on at most, and
        begins with what its owner asked for: so what a trial costs the others is bounded by that, for a decision.
        """
        tried = np.array([0 if one is None else 2 * one.most for one in self._experience], np.int64)
        most = np.where(self._application != UNKNOWN, self._jobs.maximum, np.maximum(self._jobs.asked, tried))
        return np.asarray(np.minimum(self._jobs.maximum, most), np.int64)

    def batches(self, at: Integers, gpus: Integers) -> list[int | None]:
        """The best batch of jobs at positions [K] on GPUs [K].

        None where it isn't the job's choice, or can't be known without a noise scale.
        """
        told = list[int | None]()
        for job, count in zip(at.tolist(), gpus.tolist(), strict=True):
            course = self._courses[job] if np.isfinite(self._noise_scale(job)) else None
            told.append(None if course is None or not self._chooses[job] else course.batch_at(count) or None)
        return told

    @property
    def _chooses(self) -> NDArray[np.bool_]:
        return np.asarray(self._records.batch_maximum > 0, np.bool_)

    @cached_property
    def _experience(self) -> list[Shown | None]:
        """What was measured of the applications of jobs."""
        found = [self._shown.get(one) for one in self._records.application.tolist()]
        return [one if one is not None and one.places else None for one in found]

    @cached_property
    def _courses(self) -> list[Course | None]:
        """By which jobs are counted in samples; None of the others."""
        of_model = (self._application != UNKNOWN) & (self._application < self._beliefs.model.measured) & self._chooses
        shown = np.array([one is not None for one in self._experience], np.bool_)
        of_run = (self._application == UNKNOWN) & shown & (self._records.batch > 0)
        found: list[Course | None] = [None] * len(shown)
        for at in np.flatnonzero(of_model | of_run).tolist() if self._gpus else ():
            course = self._course(at)
            legal = np.clip([self._jobs.minimum[at], self._jobs.maximum[at]], 1, self._gpus)
            found[at] = course if course.at(np.arange(legal[0], legal[1] + 1)).any() else None
        return found

    def _course(self, at: int) -> Course:
        """By what was measured in the run on as many GPUs as that was; of more the domain model says how it goes on.

        It is counted at the efficiency of the batch that the application's samples are counted by.
        """
        application, shown, noise = int(self._application[at]), self._experience[at], self._noise_scale(at)
        own = None if shown is None else self._measured(at, shown, noise)
        if application == UNKNOWN and own is not None:
            return own
        found = self._beliefs.goodput(application, self._limits(at), experience.rounded(noise), self._gpus)
        if own is None or shown is None:
            return found
        most = min(shown.most, self._gpus)
        here, there = float(own.at(np.array(most))), float(found.at(np.array(most)))
        few, scale = found.gpus <= most, here / there if here > 0 and there > 0 else 1.0
        goodput = np.where(few, own.goodput, scale * found.goodput)
        return Course(found.gpus, goodput, np.where(few, own.batch, found.batch))

    def _measured(self, at: int, shown: Shown, noise: float) -> Course:
        cluster = max(1, int(self._beliefs.model.throughput.node[0])), self._gpus
        limits, batch = self._limits(at), int(self._records.batch[at])
        if self._chooses[at]:
            found, worth = experience.goodput(shown, limits, noise, cluster), 1.0
            if np.isfinite(noise):
                worth = (shown.initial + noise) / (limits.initial + noise)
        else:
            found = experience.goodput(shown, limits._replace(initial=batch, largest=batch), np.inf, cluster)
            worth = experience.rate(shown.initial, batch, batch, noise)
        return found._replace(goodput=found.goodput * worth)

    def _limits(self, at: int) -> Batches:
        one = self._records
        least, most = int(one.gpu_batch_minimum[at]) or 1, int(one.gpu_batch_maximum[at]) or NO_LIMIT
        return Batches(int(one.batch_initial[at]), int(one.batch_maximum[at]), least, most)

    def _noise_scale(self, at: int) -> float:
        """The job's own, else what the first of its application had in the run, else at first in the domain model."""
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
    def _left(self) -> Floats:
        """What is left of each in its unit, [J]: steps where its application is known and its batch is fixed."""
        return np.asarray(np.maximum(np.where(self._sampled, self._samples_left, self._steps_left), TINY), np.float64)

    @cached_property
    def _sampled(self) -> NDArray[np.bool_]:
        """Which jobs are counted in samples, [J]."""
        return np.array([course is not None for course in self._courses], np.bool_)

    @cached_property
    def _steps_left(self) -> Floats:
        """Steps until each is finished, [J], a step at least; GPU-seconds where nothing is known of its application.

        By its own pace as soon as that is measured, and before by what jobs of its application usually take, of as
        much data; of a member's run by the iterations that are left.
        """
        records, jobs = self._records, self._jobs
        reference = np.where(np.isfinite(records.pace), records.paced_on, jobs.asked)
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
        """Samples until each is finished, [J], of those that count in them."""
        records, found = self._records, np.zeros(len(self._application))
        if not self._sampled.any():
            return found
        done = np.nan_to_num(state.done(records))
        alone = np.array([0.0 if one is None else float(one.goodput[1] or one.goodput.max()) for one in self._courses])
        groups = dict[str, list[int]]()
        for at in np.flatnonzero(self._sampled).tolist():
            groups.setdefault(records.application[at], []).append(at)
        for own, rows in groups.items():
            each, shown = np.array(rows, np.int64), self._shown.get(own)
            known = np.array([*(shown.needed if shown else ()), *self._beliefs.needed(own)]).reshape(-1, 2)
            usual = float(np.median(known[known[:, 1] > 0, 1])) if (known[:, 1] > 0).any() else np.nan
            totals = np.sort(known[:, 0] / _sized(known[:, 1], usual))
            size = _sized(records.data[each], usual)
            part = done[each] / size
            found[each] = mean_left(totals, part, np.maximum(part, GPU_HOUR * alone[each] / size))
            found[each] = np.maximum(found[each], part.max() - part) * size
        return self._by_iterations(found, done)

    def _by_iterations(self, left: Floats, done: Floats) -> Floats:
        """Samples that are left, [J], where jobs tell their iterations: by what those took that are over."""
        records = self._records
        told = (records.iteration > 0) & np.isfinite(records.iterations)
        rest = np.maximum(records.iterations - records.iteration, 0.0)
        paced = [
            0.0 if one is None else float(one.at(gpus))
            for one, gpus in zip(self._courses, records.paced_on, strict=True)
        ]
        with np.errstate(divide="ignore", invalid="ignore"):
            each = np.where(records.done_then > 0, records.done_then / records.iteration, paced / records.pace)
            gone = np.where(records.done_then > 0, done - records.done_then, 0.0)
            counted = np.maximum(each * rest - gone, LEAST * each)
        return np.where(told & (each > 0), counted, left)

    @property
    def _slower(self) -> Floats:
        """What the steps whose pace was measured were multiplied by beside others, [J]."""
        if self.neighbours is None:
            return np.ones(len(self._application))
        there = np.isfinite(self._records.pace) & (self._records.paced_on == self._jobs.gpus)
        return np.where(there, slowdowns(self.neighbours, self._jobs.held), 1.0)

    def _unmeasured(self, usual: Floats) -> Floats:
        """Seconds that are left of jobs whose pace or end isn't known, [J]: by what each did, or how long it ran."""
        records = self._records
        done = np.where(np.isfinite(records.iterations), records.iteration / records.iterations, np.nan)
        rest = self._beliefs.seconds_left(self._application, records.data, self._jobs.running)
        return np.where(np.isfinite(done), usual * np.clip(1.0 - done, 0.0, 1.0), rest)

    def _seconds(self, gpus: Integers) -> Floats:
        """Of a unit of what is left, [J, K]; infinite where a job can't use so many."""
        several = np.clip(gpus, 1, self._gpus)
        seconds = self._beliefs.step_seconds(self._application, self._batch, several)
        with np.errstate(divide="ignore"):
            for at in np.flatnonzero(self._sampled).tolist():
                course = self._courses[at]
                assert course is not None  # noqa: S101 - it is one of those that are counted in samples
                seconds[at] = 1.0 / course.at(several[at])
        return np.where((gpus > 0) & (gpus <= self.maximum[:, None]), seconds, np.inf)
