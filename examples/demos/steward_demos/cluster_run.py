"""Runs of ``steward demo cluster``: trainings in processes of their own, and players that decide the CPU of each.

The players are equal shares, first come first served, and Steward.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean
from typing import NamedTuple, Protocol

from typing_extensions import override

from steward_demos.processes import Child, CpuLimit, Listener, limited
from steward_demos.service import Json, Steward

SPEC: Json = json.loads(Path(__file__).with_name("cluster.json").read_text())
NAME: str = SPEC["name"]
SLICES: int = SPEC["nodes"][0]["gpus"]
PERCENT = 12  # of a core, a slice: all of them are less than a core, which every machine has to give
FETCH_SECONDS = 0.1  # of each iteration go by until its data are there, whatever CPU there is


class Size(NamedTuple):
    """A network: its width in units, and the CPU seconds of an iteration for which batches are chosen."""

    width: int
    seconds: float


class Job(NamedTuple):
    """A training: its network, queue, requested slices, iterations, and arrival in seconds since the start."""

    name: str
    size: str
    queue: str
    gpus: int
    iterations: int
    at: float


SIZES = {"small": Size(256, 0.12), "large": Size(640, 0.4)}
JOBS = (
    Job("archive", "large", "batch", 4, 20, 0.0),
    Job("nightly", "small", "batch", 4, 30, 1.0),
    Job("release", "large", "urgent", 4, 12, 4.0),
    Job("hotfix", "small", "urgent", 4, 14, 8.0),
)


class Progress(NamedTuple):
    """A job's completed iteration: its number, accuracy (share), slices, and seconds (None: the slices changed
    meanwhile).
    """

    job: Job
    iteration: int
    accuracy: float
    slices: int
    seconds: float | None


class Events(NamedTuple):
    """Events up to ``at`` (seconds): arrived jobs, completed iterations, ended jobs."""

    at: float
    arrived: Sequence[Job]
    progressed: Sequence[Progress]
    ended: Sequence[Job]


class Choice(NamedTuple):
    """Slices by job's name, 0 for others, and the latest time of the next call (seconds; None: no limit)."""

    slices: Mapping[str, int]
    wake_at: float | None = None


class Player(Protocol):
    """Decides the slices of a run's jobs."""

    name: str

    def react(self, events: Events) -> Choice:
        """Decide the slices of all jobs, and when to be called again, after these events."""
        ...


class Ruled(Player):
    """Decides by a rule: from present jobs, in order of arrival, to slices by job's name."""

    def __init__(self, name: str, rule: Callable[[Sequence[Job]], Mapping[str, int]]) -> None:
        self.name, self.rule = name, rule
        self.jobs: list[Job] = []

    @override
    def react(self, events: Events) -> Choice:
        self.jobs = [job for job in (*self.jobs, *events.arrived) if job not in events.ended]
        return Choice(self.rule(self.jobs))


def equal_share(jobs: Sequence[Job]) -> Mapping[str, int]:
    """Equal slices by job's name; the first jobs get the remainder."""
    each, over = divmod(SLICES, max(1, len(jobs)))
    return {job.name: each + (place < over) for place, job in enumerate(jobs)}


def first_come(jobs: Sequence[Job]) -> Mapping[str, int]:
    """Requested slices by job's name, first come, first served; jobs after the first that doesn't fit get none."""
    needed = itertools.accumulate(job.gpus for job in jobs)
    return {job.name: job.gpus for job, slices in zip(jobs, needed, strict=True) if slices <= SLICES}


class Managed:
    """Reports every event to Steward and follows its decisions.

    Args:
        batches: samples of an iteration, by size of the network.
    """

    name = "Steward"

    def __init__(self, steward: Steward, workload: str, batches: Mapping[str, int]) -> None:
        self.steward, self.batches = steward, batches
        self.run = steward.start(workload)["id"]
        self.reports = itertools.count()
        self.slices: dict[str, int] = {}
        self.policy = self.reason = ""

    def react(self, events: Events) -> Choice:
        """Report the events and return the decision."""
        report = {
            "at": events.at,
            "submitted": [self.submitted(job) for job in events.arrived],
            "progressed": [progressed(one) for one in events.progressed],
            "ended": [{"job": job.name} for job in events.ended],
        }
        decision = self.steward.report(self.run, next(self.reports), report)
        self.policy = f"{decision['source']}: {decision['policy']}"
        self.slices |= {change["job"]: change["gpus"] for change in decision["changes"]}
        for job in events.ended:
            self.slices.pop(job.name, None)
        for change in decision["changes"]:
            if change["trades"]:
                self.reason = f"{change['job']}: {change['text']}"
        return Choice(self.slices, decision["wake_at"])

    def submitted(self, job: Job) -> Json:
        """A job as a member of a report."""
        request = {"gpus": job.gpus, "maximum": SLICES, "iterations": job.iterations}
        what = {"application": job.size, "batch": self.batches[job.size], "queue": job.queue}
        return {"job": job.name, "at": job.at, **request, **what}

    def finish(self) -> None:
        """Finish the run at the service."""
        self.steward.finish(self.run)


def progressed(one: Progress) -> Json:
    """A completed iteration as a member of a report."""
    fields = {"job": one.job.name, "iteration": one.iteration, "metric": one.accuracy}
    return fields if one.seconds is None else {**fields, "seconds": one.seconds, "gpus": one.slices}


CALIBRATION_BATCHES = 8
PROFILED_SLICES = (1, 2, 4, 8)
PROFILED_ITERATIONS = 3


class Iteration(NamedTuple):
    """A completed iteration: number of its training, seconds, and accuracy (share) after it."""

    training: int
    seconds: float
    accuracy: float


class Trainings:
    """Trainings by number; each runs one iteration at a time. Methods raise ChildError if a process has ended."""

    def __init__(self, children: Sequence[Child], limits: Sequence[CpuLimit]) -> None:
        self.children, self.limits = children, limits
        self.limit = limits[0].name
        self.batches: dict[str, int] = {}
        self._listener = Listener(children)

    def load(self) -> None:
        """Wait until all processes have started, and add them to their limits."""
        for child, limit in zip(self.children, self.limits, strict=True):
            child.read()
            limit.add(child.process.pid)

    def calibrate(self) -> None:
        """Choose the batches of an iteration by network so that it takes the network's CPU seconds."""
        for name, size in SIZES.items():
            self.batches[name] = CALIBRATION_BATCHES
            self.begin(0, name, seed=0)
            self.children[0].call()
            used = min(self.children[0].call()["cpu_seconds"] for _ in range(3))
            self.batches[name] = max(1, round(CALIBRATION_BATCHES * size.seconds / used))

    def profile(self, size: str) -> Iterator[tuple[int, float]]:
        """Measure iterations of a network on several numbers of slices; yields slices and seconds."""
        self.begin(0, size, seed=0)
        self.children[0].call()
        for slices in PROFILED_SLICES:
            self.give(0, slices)
            for _ in range(PROFILED_ITERATIONS):
                yield slices, self.children[0].call()["seconds"]

    def begin(self, training: int, size: str, seed: int) -> None:
        """Start a new training of a network with a seed, and wait until it is ready."""
        self.limits[training].set(100)
        how = {"batches": self.batches[size], "fetch_seconds": FETCH_SECONDS, "seed": seed, "width": SIZES[size].width}
        self.children[training].call(start=how)

    def give(self, training: int, slices: int) -> None:
        """Limit a training to this number of slices; 0 stops it."""
        self.limits[training].set(slices * PERCENT)

    def start(self, training: int) -> None:
        """Start an iteration; ``wait`` returns its result."""
        self.children[training].send()

    def wait(self, until: float) -> list[Iteration]:
        """Completed iterations as soon as there is one; empty if there is none by ``until`` (``time.monotonic``)."""
        return [
            Iteration(number, result["seconds"], result["accuracy"]) for number, result in self._listener.wait(until)
        ]

    def close(self) -> None:
        """Stop listening to the trainings."""
        self._listener.close()


@contextmanager
def trainings() -> Iterator[Trainings]:
    """Context manager: start the training processes with CPU limits; end both at its exit."""
    with ExitStack() as stack:
        limits = [stack.enter_context(limited()) for _ in JOBS]
        children = [stack.enter_context(Child("steward_demos.training")) for _ in JOBS]
        several = Trainings(children, limits)
        stack.callback(several.close)
        yield several


IDLE_SECONDS = 1.0  # longest time between two calls of the player


class Played(NamedTuple):
    """A completed run; times are in seconds since its start.

    Attributes:
        name: of its player.
        completion: seconds from each job's arrival to its end.
        slices_at: slices by job, as (time, slices) at each change.
        learnt: accuracies, as (time, job, share of correct digits).
    """

    name: str
    completion: Mapping[Job, float]
    slices_at: Sequence[tuple[float, Mapping[str, int]]]
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
        self.slices_at: list[tuple[float, Mapping[str, int]]] = []
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
        return Played(self.player.name, self.completion, self.slices_at, self.learnt)

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
        if self.slices != before or not self.slices_at:
            self.slices_at.append((now, {self.jobs[number].name: slices for number, slices in self.slices.items()}))

    def next_arrival(self) -> float:
        """Arrival of the next job in seconds since the start; infinity after the last."""
        return self.jobs[self.came].at if self.came < len(self.jobs) else float("inf")

    def wake(self, choice: Choice, now: float) -> float:
        """Latest time of the player's next call, in seconds since the start."""
        return min(now + IDLE_SECONDS, choice.wake_at if choice.wake_at is not None else float("inf"))
