"""One run of the jobs under a player, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from app.demo.sharing.players import Choice, Events, Player, Progress
from app.demo.sharing.trainings import Iteration, Trainings
from app.demo.sharing.workload import Job

IDLE_SECONDS = 1.0  # at least that often time is told to the player


class Played(NamedTuple):
    """A run.

    Attributes:
        name: of its player.
        completion: seconds from a job's arrival to its end.
        given: slices by job, from each moment on at which that changed.
        learnt: accuracy of a job at a moment.
    """

    name: str
    completion: Mapping[Job, float]
    given: Sequence[tuple[float, Mapping[str, int]]]
    learnt: Sequence[tuple[float, Job, float]]

    @property
    def seconds(self) -> float:
        """When the last job ended."""
        return max(job.at + seconds for job, seconds in self.completion.items())

    def mean(self, queue: str | None = None) -> float:
        """Mean completion time, of all jobs or of a queue's."""
        return mean(seconds for job, seconds in self.completion.items() if queue in (None, job.queue))


class Run:
    """The client's side of a run: who is there, how far each job is, and what it has."""

    def __init__(self, trainings: Trainings, player: Player, jobs: Sequence[Job]) -> None:
        self.trainings, self.player, self.jobs = trainings, player, jobs
        self.came = 0
        self.done = dict.fromkeys(range(len(jobs)), 0)
        self.slices = dict.fromkeys(range(len(jobs)), 0)
        self.under_way: set[int] = set()
        self.unsteady: set[int] = set()
        self.completion: dict[Job, float] = {}
        self.given: list[tuple[float, Mapping[str, int]]] = []
        self.learnt: list[tuple[float, Job, float]] = []

    def play(self, on_moment: Callable[[float], None]) -> Played:
        """Let the jobs come and train to their ends; ``on_moment`` is told the share of iterations that are done."""
        for number, job in enumerate(self.jobs):
            self.trainings.begin(number, job.size, seed=number)
            self.trainings.give(number, 0)
        began, finished = time.monotonic(), list[Iteration]()
        whole = sum(job.iterations for job in self.jobs)
        while len(self.completion) < len(self.jobs):
            now = time.monotonic() - began
            choice = self.player.react(self.events(now, finished))
            self.carry_out(choice, now)
            on_moment(sum(self.done.values()) / whole)
            if len(self.completion) < len(self.jobs):
                finished = self.trainings.wait(began + min(self.next_arrival(), self.wake(choice, now)))
        return Played(self.player.name, self.completion, self.given, self.learnt)

    def events(self, now: float, finished: Sequence[Iteration]) -> Events:
        """What has happened since the last time."""
        first = self.came
        while self.came < len(self.jobs) and self.jobs[self.came].at <= now:
            self.came += 1
        progressed = [self.progressed(one, now) for one in finished]
        ended = [one.job for one in progressed if one.iteration == one.job.iterations]
        self.completion |= {job: now - job.at for job in ended}
        return Events(now, self.jobs[first : self.came], progressed, ended)

    def progressed(self, one: Iteration, now: float) -> Progress:
        """An iteration is done; its seconds count where nothing changed on the way."""
        number, job = one.training, self.jobs[one.training]
        self.done[number] += 1
        self.under_way.remove(number)
        steady = number not in self.unsteady
        self.unsteady.discard(number)
        self.learnt.append((now, job, one.accuracy))
        return Progress(job, self.done[number], one.accuracy, self.slices[number], one.seconds if steady else None)

    def carry_out(self, choice: Choice, now: float) -> None:
        """Give each training what was decided, and have those that have something go on."""
        before = dict(self.slices)
        for number, job in enumerate(self.jobs[: self.came]):
            if job in self.completion:
                self.slices[number] = 0
                continue
            self.slices[number] = choice.slices.get(job.name, 0)
            if self.slices[number] != before[number]:
                self.trainings.give(number, self.slices[number])
                self.unsteady.add(number)
            if self.slices[number] and number not in self.under_way:
                self.trainings.start(number)
                self.under_way.add(number)
        if self.slices != before or not self.given:
            self.given.append((now, {self.jobs[number].name: slices for number, slices in self.slices.items()}))

    def next_arrival(self) -> float:
        """When the next job comes, seconds since the start."""
        return self.jobs[self.came].at if self.came < len(self.jobs) else float("inf")

    def wake(self, choice: Choice, now: float) -> float:
        """When the player is told the time at the latest."""
        return min(now + IDLE_SECONDS, choice.wake_at if choice.wake_at is not None else float("inf"))
