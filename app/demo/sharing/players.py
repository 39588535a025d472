"""Players, which decide each training's share of the CPU: equal shares, first come first served, or Steward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from typing_extensions import override

from app.demo.api import Json, Steward
from app.demo.sharing.workload import SLICES, Job


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
    needed = itertools.accumulate(job.asked for job in jobs)
    return {job.name: job.asked for job, slices in zip(jobs, needed, strict=True) if slices <= SLICES}


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
        asked = {"gpus": job.asked, "maximum": SLICES, "iterations": job.iterations}
        what = {"application": job.size, "batch": self.batches[job.size], "queue": job.queue}
        return {"job": job.name, "at": job.at, **asked, **what}

    def finish(self) -> None:
        """Finish the run at the service."""
        self.steward.finish(self.run)


def progressed(one: Progress) -> Json:
    """A completed iteration as a member of a report."""
    told = {"job": one.job.name, "iteration": one.iteration, "metric": one.accuracy}
    return told if one.seconds is None else {**told, "seconds": one.seconds, "gpus": one.slices}
