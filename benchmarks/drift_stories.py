"""Drifts shown whole, over HTTP: what is noticed, what is done about it, and how long that takes.

``STEWARD_DATA=… python -m benchmarks drift_stories`` (``drift_stories:follow`` tells one, in one to four minutes). One
server, one user, a request every quarter of a second, eight reports a second of the run's own time; workers fit and
train with 40,000 environment steps of ``ppo``. Times are wall-clock seconds from the shift on.

- ``follow``: an agent answers, and batches take six times as long. It is noticed, fitted, trained for, tried as a
  shadow, promoted, and kept.
- ``refuse``: the rule answers, and batches take twice as long. The rule goes by the new model; the agent that is
  trained is refused, with the reason.
- ``revert``: an agent answers, and batches take six times as long, but only until that is noticed. The agent that is
  trained for it reaches less than the one before, which answers again.
- ``quiet``: nothing shifts, batches vary as in the samples (σ of the logarithm .05); notices in 100,000 reports of ten
  runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from textwrap import shorten
from typing import Any

import numpy as np
from steward_demos.service import own_service

from tests.journeys.test_drift import NAME, SPEC, WANTED, Farm, ended, learned, samples
from tests.journeys.test_kill_api import Connection

RUNS, REPORTS = 10, 10_000
USUAL, PATIENCE_SECONDS, PAUSE_SECONDS = 150, 300.0, 0.02
Row = dict[str, Any]


class Brief(Farm):
    """Servers that are slower until that is noticed."""

    def go(self, caller: Connection, reports: int, slower: float = 1.0) -> None:
        """Report so many times."""
        for _ in range(reports):
            super().go(caller, 1, 1.0 if self.drift else slower)


def answered(caller: Connection, farm: Farm, slower: float) -> list[Row]:
    """Go on until the drift is answered; the steps, with seconds since the shift."""
    began, last = time.time(), time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < last:
        farm.go(caller, 5, slower)
        time.sleep(PAUSE_SECONDS)
        adaptations = caller.call("GET", f"/workloads/{NAME}/drift")[1]["adaptations"]
        if adaptations and adaptations[0]["finished_at"] is not None:
            break
    steps = adaptations[0]["steps"] if adaptations else [{"state": "unnoticed", "why": "nothing", "at": _now()}]
    return [
        {"state": step["state"], "why": step["why"], "seconds": datetime.fromisoformat(step["at"]).timestamp() - began}
        for step in steps
    ]


def _now() -> str:
    return datetime.now(UTC).isoformat()


def unlearned(caller: Connection) -> None:
    """The same workload with a domain model alone: the rule answers."""
    assert caller.call("POST", "/workloads", SPEC)[0] == 201  # noqa: S101 - else there is nothing to tell
    assert caller.call("POST", f"/workloads/{NAME}/samples", samples())[0] == 201  # noqa: S101
    ended(caller, caller.call("POST", f"/workloads/{NAME}/models", {})[1]["id"])
    assert caller.call("PUT", f"/workloads/{NAME}/drift", WANTED)[0] == 200  # noqa: S101


def tell_story(caller: Connection, begin: Callable[[Connection], object], make: type[Farm], slower: float) -> list[Row]:
    """A story: as it was for a while, then shifted."""
    begin(caller)
    farm = make(caller.call("POST", "/runs", {"workload": NAME})[1]["id"])
    Farm.go(farm, caller, USUAL)
    shifted = farm.number
    steps = answered(caller, farm, slower)
    noticed = [*caller.call("GET", f"/runs/{farm.run}")[1]["drift"], {"iteration": farm.number}][0]
    before, after = (
        next(one["expected_seconds"] for decision in some for one in decision["start"])
        for some in (farm.decisions, reversed(farm.decisions))
    )
    print(*(f"{step['seconds']:.1f} s {step['state']}: {step['why']}" for step in steps), sep="\n")
    steps[0] |= {"reports": noticed["iteration"] - shifted, "expects": f"{before:.3f} s a batch, at last {after:.3f}"}
    return steps


STORIES: dict[str, tuple[Callable[[Connection], object], type[Farm], float, str]] = {
    "follow": (learned, Farm, 6.0, "kept"),
    "refuse": (unlearned, Farm, 2.0, "rejected"),
    "revert": (learned, Brief, 6.0, "rolled_back"),
}
PARTS = (*STORIES, "quiet")


def story(name: str) -> Row:
    """One of them, in a service of its own."""
    begin, make, slower, wanted = STORIES[name]
    with own_service() as steward, Connection(steward.url) as caller:
        steps = tell_story(caller, begin, make, slower)
    states = " → ".join(f"{step['state']} {step['seconds']:.0f} s" for step in steps)
    text = f"{name}: noticed after {steps[0]['reports']} reports; {states}; {shorten(steps[-1]['why'], 120)}"
    text += f"; decisions expected {steps[0]['expects']}"
    goal = f"ends as {wanted}: {'met' if steps[-1]['state'] == wanted else 'missed'}"
    return _row(text, steps[-1]["seconds"], "s", goal)


def quiet() -> Row:
    """Notices in runs whose batches take what the domain model says."""
    random, notices = np.random.default_rng(1), 0
    with own_service() as steward, Connection(steward.url) as caller:
        unlearned(caller)
        for _ in range(RUNS):
            farm = Farm(caller.call("POST", "/runs", {"workload": NAME})[1]["id"])
            for factor in random.lognormal(0, 0.05, REPORTS):
                farm.go(caller, 1, float(factor))
            notices += len(farm.drift)
    count = RUNS * REPORTS
    return _row(
        f"quiet: notices in {count:,} reports", notices, "", f"at most 1: {'met' if notices <= 1 else 'missed'}"
    )


def _row(name: str, value: float, unit: str, goal: str) -> Row:
    return {"name": name, "value": value, "unit": unit, "peer": "", "peer_value": None, "ratio": None, "goal": goal}


def results(names: Sequence[str] = PARTS) -> list[Row]:
    """A row of each part."""
    return [quiet() if name == "quiet" else story(name) for name in names]


if __name__ == "__main__":
    from benchmarks.__main__ import show

    show("drift_stories", results())
