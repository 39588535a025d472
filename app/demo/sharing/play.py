"""One run in real time: jobs arrive, and trainings run with the slices that a player decides."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from app.demo.sharing.players import Choice, Events, Player, Progress
from app.demo.sharing.trainings import Iteration, Trainings
from app.demo.sharing.workload import Job

IDLE_SECONDS = 1.0  # longest time between two calls of the player


class Played(NamedTuple):
    """A completed run; times are in seconds since its start.

    Attributes:
        name: of its player.
        completion: seconds from each job's arrival to its end.
        given: slices by job, as (time, slices) at each change.
        learnt: accuracies, as (time, job, share of correct digits).
    """

    name: str
    completion: Mapping[Job, float]
    given: Sequence[tuple[float, Mapping[str, int]]]
    learnt: Sequence[tuple[float, Job, float]]

    @property
    def seconds(self) -> float:
        """End of the last job, in seconds since the start."""
        return max(job.at + seconds for job, seconds in self.completion.items())

    def mean(self, queue: str | None = None) -> float:
        """Mean completion time in seconds, of a queue's jobs (None: of all); raises StatisticsError without any."""
        return mean(seconds for job, seconds in self.completion.items() if queue in (None, job.queue))


class Run:
    """Client of a run: runs the trainings and records their progress and slices."""

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
        """Run all jobs to their ends; ``on_moment`` is called with the share of completed iterations."""
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
        """Events since the last call: arrived jobs, completed iterations, ended jobs."""
        first = self.came
        while self.came < len(self.jobs) and self.jobs[self.came].at <= now:
            self.came += 1
        progressed = [self.progressed(one, now) for one in finished]
        ended = [one.job for one in progressed if one.iteration == one.job.iterations]
        self.completion |= {job: now - job.at for job in ended}
        return Events(now, self.jobs[first : self.came], progressed, ended)

    def progressed(self, one: Iteration, now: float) -> Progress:
        """Record a completed iteration; its seconds are None if its slices changed meanwhile."""
        number, job = one.training, self.jobs[one.training]
        self.done[number] += 1
        self.under_way.remove(number)
        steady = number not in self.unsteady
        self.unsteady.discard(number)
        self.learnt.append((now, job, one.accuracy))
        return Progress(job, self.done[number], one.accuracy, self.slices[number], one.seconds if steady else None)

    def carry_out(self, choice: Choice, now: float) -> None:
        """Set each training's slices as chosen, and start the next iteration of those with any."""
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
        """Arrival of the next job in seconds since the start; infinity after the last."""
        return self.jobs[self.came].at if self.came < len(self.jobs) else float("inf")

    def wake(self, choice: Choice, now: float) -> float:
        """Latest time of the player's next call, in seconds since the start."""
        return min(now + IDLE_SECONDS, choice.wake_at if choice.wake_at is not None else float("inf"))
