"""What pages show of clusters: who had how many GPUs, who waited, what jobs learnt, and what each change was for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.charts.figure import Figure
from app.charts.spans import courses, shares
from app.kinds.contract.text import number
from app.kinds.contract.views import Fact, Shown, Views

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_JOBS = 8
GIVEN_BACK = "shrunk"


class ClusterViews(Views):
    """See ``app.kinds.contract.views.Views``."""

    def facts(self, compiled: Any, shown: Shown) -> Sequence[Fact]:
        """See ``Views``."""
        decision: Json = shown.steps[-1].decision if shown.steps else shown.first
        found = [
            Fact("reports", f"{shown.iterations:,}"),
            Fact("time", f"{number(decision['at'])} s"),
            Fact("jobs", f"{decision['running']} run, {decision['waiting']} wait"),
            Fact("free", f"{decision['free']:,} of {int(compiled.layout.capacity.sum()):,} GPUs"),
            Fact("rule", str(decision["rule"]).replace("_", " ")),
        ]
        given = sum(change["before"] - change["gpus"] for change in _changes(shown) if change["code"] == GIVEN_BACK)
        return [*found, Fact("given back", f"{given:,} GPUs", "by jobs that shrank")] if given else found

    def run(self, compiled: Any, shown: Shown) -> Sequence[Figure]:
        """See ``Views``."""
        if not shown.steps:
            return []
        whole = float(compiled.layout.capacity.sum())
        moments, waiting = _held(shown)
        learning = _learning(shown)
        told = "GPUs of each job, one on top of the other. Dashed: all there are."
        found = [
            shares("Who had how many GPUs", "GPUs", moments, whole, told),
            courses("Jobs that wait", "jobs", {"waiting": waiting}, "After each decision.", steps=True),
        ]
        if learning:
            found.append(courses("What jobs have learnt", "loss or metric", learning, "As reported, by job."))
        return found


def _changes(shown: Shown) -> list[Json]:
    return [change for step in shown.steps for change in step.decision.get("changes", ())]


def _held(shown: Shown) -> tuple[list[tuple[float, Mapping[str, float]]], Course]:
    """GPUs by job after each decision, and how many waited."""
    held: dict[str, float] = {}
    moments: list[tuple[float, Mapping[str, float]]] = []
    waiting: Course = []
    for step in shown.steps:
        for job in step.report.get("ended", ()):
            held.pop(job["job"], None)
        held |= {change["job"]: float(change["gpus"]) for change in step.decision.get("changes", ())}
        moments.append((step.report["at"], dict(held)))
        waiting.append((step.report["at"], float(step.decision.get("waiting", 0))))
    return moments, waiting


def _learning(shown: Shown) -> dict[str, Course]:
    """What jobs have reported of themselves, of the first few."""
    found: dict[str, Course] = {}
    for step in shown.steps:
        for job in step.report.get("progressed", ()):
            value = job.get("loss") if job.get("loss") is not None else job.get("metric")
            if value is not None and (job["job"] in found or len(found) < MOST_JOBS):
                found.setdefault(job["job"], []).append((step.report["at"], value))
    return found
