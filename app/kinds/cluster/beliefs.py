"""What decisions ask of a domain model: how long steps of jobs take, and how long jobs last, of many jobs at once.

Applications are told by position; ``UNKNOWN`` is one whose steps weren't measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from app.kinds.cluster.allocation.neighbours import Neighbours
from app.kinds.cluster.arrivals import APPLICATION, DATA, DURATION, GPUS, HOUR_SECONDS, HOURS, QUEUE, SAMPLES
from app.kinds.cluster.goodput import Batches, Course, course
from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.lengths import Lengths
from app.kinds.cluster.model import ClusterModel
from app.kinds.cluster.throughput import Place, seconds
from app.kinds.contract.member import Member

UNKNOWN, MOST_ROWS = -1, 4_096


class Beliefs:
    """See the module.

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
