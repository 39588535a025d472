"""Who decides how much of the CPU each training has: equal shares, first come first served, or Steward."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from typing_extensions import override

from app.demo.api import Json, Steward
from app.demo.sharing.workload import SLICES, Job


class Progress(NamedTuple):
    """A job's iteration that is done: how many it has done, the accuracy, the slices it had; its seconds, if it had
    them all the time.
    """

    job: Job
    iteration: int
    accuracy: float
    slices: int
    seconds: float | None


class Events(NamedTuple):
    """What has happened by ``at``: jobs that came, iterations that were done, and jobs that ended."""

    at: float
    arrived: Sequence[Job]
    progressed: Sequence[Progress]
    ended: Sequence[Job]


class Choice(NamedTuple):
    """Slices by job; jobs that aren't named have none; and when to ask again at the latest."""

    slices: Mapping[str, int]
    wake_at: float | None = None


class Player(Protocol):
    """Who decides for a run."""

    name: str

    def react(self, events: Events) -> Choice:
        """Who has what, now that this has happened."""
        ...


class Ruled(Player):
    """A rule on who is there, in order of arrival: slices by job."""

    def __init__(self, name: str, rule: Callable[[Sequence[Job]], Mapping[str, int]]) -> None:
        self.name, self.rule = name, rule
        self.jobs: list[Job] = []

    @override
    def react(self, events: Events) -> Choice:
        self.jobs = [job for job in (*self.jobs, *events.arrived) if job not in events.ended]
        return Choice(self.rule(self.jobs))


def equal_share(jobs: Sequence[Job]) -> Mapping[str, int]:
    """As many for each; those who came first have what is left over."""
    each, over = divmod(SLICES, max(1, len(jobs)))
    return {job.name: each + (place < over) for place, job in enumerate(jobs)}


def first_come(jobs: Sequence[Job]) -> Mapping[str, int]:
    """What was asked for, first come, first served; who doesn't fit waits, and all behind."""
    needed = itertools.accumulate(job.asked for job in jobs)
    return {job.name: job.asked for job, slices in zip(jobs, needed, strict=True) if slices <= SLICES}


class Managed:
    """Steward: every event is reported, and what its decision changes is changed.

    Args:
        batches: of an iteration, by size.
    """

    name = "Steward"

    def __init__(self, steward: Steward, workload: str, batches: Mapping[str, int]) -> None:
        self.steward, self.batches = steward, batches
        self.run = steward.start(workload)["id"]
        self.reports = itertools.count()
        self.slices: dict[str, int] = {}
        self.policy = self.reason = ""

    def react(self, events: Events) -> Choice:
        """Report, and read the decision."""
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
        """A job as it is reported when it comes."""
        asked = {"gpus": job.asked, "maximum": SLICES, "iterations": job.iterations}
        what = {"application": job.size, "batch": self.batches[job.size], "queue": job.queue}
        return {"job": job.name, "at": job.at, **asked, **what}

    def finish(self) -> None:
        """Finish the run at the service."""
        self.steward.finish(self.run)


def progressed(one: Progress) -> Json:
    """An iteration as it is reported."""
    told = {"job": one.job.name, "iteration": one.iteration, "metric": one.accuracy}
    return told if one.seconds is None else {**told, "seconds": one.seconds, "gpus": one.slices}
