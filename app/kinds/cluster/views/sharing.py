"""What reports and decisions tell of jobs over time: GPUs that they had, what they learnt, what they gave back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from app.kinds.cluster.live.learning import LITTLE_LEFT
from app.kinds.contract.views import Shown, Step

Json = Mapping[str, Any]
Course = list[tuple[float, float]]
MOST_JOBS = 8
REST = "jobs of before"


def part(shown: Shown) -> str:
    """Which reports are shown, where these are not all."""
    return "" if shown.every == 1 else f" Of the last {len(shown.recent):,} of {shown.iterations:,} reports."


def after(shown: Shown) -> str:
    """After which decisions something is told."""
    return "After each decision." if shown.every == 1 else f"After every {shown.every:,}th decision of the whole run."


def held(shown: Shown, whole: float) -> list[tuple[float, Mapping[str, float]]]:
    """GPUs by job after each of the last decisions; what older jobs have that did not change since is told as one."""
    has = _before(shown)
    found: list[tuple[float, Mapping[str, float]]] = []
    for step in shown.recent:
        there = {one["job"] for name in ("submitted", "progressed") for one in step.report.get(name, ())}
        gone = {one["job"] for one in step.report.get("ended", ())}
        if step.report.get("whole"):
            gone |= has.keys() - there
        has = {job: gpus for job, gpus in has.items() if job not in gone}
        has |= {change["job"]: float(change["gpus"]) for change in step.decision["changes"]}
        rest = whole - step.decision["free"] - sum(has.values())
        found.append((step.report["at"], {**({REST: rest} if rest > 0 else {}), **has}))
    return found


def _before(shown: Shown) -> dict[str, float]:
    """What jobs had before the first of the last reports: by their first change since, or, without any, as now."""
    if shown.every == 1:
        return {}
    state = shown.state
    found: dict[str, float] = {} if state is None else dict(zip(state.names, state.jobs.gpus.tolist(), strict=True))
    for change in (one for step in reversed(shown.recent) for one in reversed(step.decision["changes"])):
        found[change["job"]] = float(change["before"])
    return found


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
        shrunk = [one for one in step.decision["changes"] if LITTLE_LEFT in one["text"] and one["gpus"] < one["before"]]
        total += sum(one["before"] - one["gpus"] for one in shrunk)
        found.append((step.report["at"], total))
    return found if total else []
