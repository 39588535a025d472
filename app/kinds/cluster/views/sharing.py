"""What reports and decisions tell of jobs over time: GPUs that they had, what they learnt, what they gave back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.kinds.contract.views import Shown, Step

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_JOBS = 8
REST = "not told apart"


def part(shown: Shown) -> str:
    """Which reports are shown, where these are not all."""
    return "" if shown.every == 1 else f" Over the whole run: every {shown.every:,}th report."


def held(shown: Shown, whole: float) -> list[tuple[float, Mapping[str, float]]]:
    """GPUs by job after decisions; where reports are left out between them, of jobs as they were changed last.

    What is in use is known after each decision; what the jobs that are told of don't make up is told as one.
    """
    has: dict[str, float] = {}
    last = _last(shown)
    found: list[tuple[float, Mapping[str, float]]] = []
    for at, step in enumerate(shown.steps):
        there, gone = _told(step), {one["job"] for one in step.report.get("ended", ())}
        if step.report.get("whole"):
            gone |= has.keys() - there
        has |= {change["job"]: float(change["gpus"]) for change in step.decision["changes"]}
        has = {job: gpus for job, gpus in has.items() if job not in gone and (shown.every == 1 or last[job] >= at)}
        found.append((step.report["at"], _within(has, whole - step.decision["free"])))
    return found


def _told(step: Step) -> set[str]:
    """Jobs that a report tells of as being there."""
    return {one["job"] for name in ("submitted", "progressed") for one in step.report.get(name, ())}


def _last(shown: Shown) -> dict[str, int]:
    """At which of the steps each job is told of last; those that are there now, at the end."""
    found: dict[str, int] = {}
    for at, step in enumerate(shown.steps):
        found |= dict.fromkeys([*_told(step), *(one["job"] for one in step.decision["changes"])], at)
    there = () if shown.state is None else shown.state.names
    return found | dict.fromkeys(there, len(shown.steps))


def _within(has: Mapping[str, float], used: float) -> dict[str, float]:
    """What jobs have of so many that are in use, and what is left of these."""
    found, left = dict[str, float](), used
    for job, gpus in has.items():
        found[job] = min(gpus, left)
        left -= found[job]
    return found | ({REST: left} if left > 0 else {})


def learning(steps: Sequence[Step]) -> dict[str, Course]:
    """What jobs have reported of themselves, of the first few."""
    found: dict[str, Course] = {}
    for step in steps:
        for job in step.report.get("progressed", ()):
            value = job.get("loss") if job.get("loss") is not None else job.get("metric")
            if value is not None and (job["job"] in found or len(found) < MOST_JOBS):
                found.setdefault(job["job"], []).append((step.report["at"], value))
    return found


def given_back(steps: Sequence[Step]) -> Course:
    """GPUs that jobs which have little left to gain gave back, summed; empty where none did."""
    total, found = 0.0, Course()
    for step in steps:
        limited = [one for one in step.decision["changes"] if one.get("ceiling") is not None]
        total += sum(max(one["before"] - one["gpus"], 0) for one in limited)
        found.append((step.report["at"], total))
    return found if total else []
