"""Servers that become slower: noticed, fitted and trained anew by workers, through a kill of the service, and kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer, wait_until

Start = Callable[..., StewardServer]
NAME, SLOWER, BUDGET = "faces", 6.0, 40_000
SECONDS = {"small": 0.02, "large": 0.05}
SPEC: dict[str, Any] = {  # the large variant keeps up with four requests a second, until servers are slower
    "name": NAME,
    "kind": "inference",
    "variants": [{"name": "small", "accuracy": 0.7}, {"name": "large", "accuracy": 0.8}],
    "servers": [{"name": "cpu", "maximum": 1}],
    "users": [{"name": "web", "quality": {"full_until": 0.1, "zero_at": 1.0}}],
    "batches": [1],
    "episode_seconds": 20,
}
QUICK = {"heartbeat_seconds": "0.3", "sweep_seconds": "0.3", "policy_poll_seconds": "0.1"}
WANTED: dict[str, Any] = {
    "respond": "retrain",
    "algorithm": "ppo",
    "budget": BUDGET,
    "equivalence_margin": 0.05,
    "shadow_decisions": 30,
    "window_reports": 200,
}


def samples() -> dict[str, Any]:
    """Twenty measured batches of each variant, and two minutes of requests."""
    rng = np.random.default_rng(0)
    arrived = np.cumsum(rng.exponential(0.25, 480))
    batches = [
        {"variant": variant, "batch": 1, "server": "cpu", "seconds": float(one)}
        for variant, seconds in SECONDS.items()
        for one in seconds * rng.lognormal(0, 0.05, 20)
    ]
    return {"samples": [{"execution": "old", "requests": [{"time": float(at)} for at in arrived], "batches": batches}]}


class Farm:
    """One server that does what it is told, over HTTP."""

    def __init__(self, run: str) -> None:
        self.run, self.number, self.now = run, 0, 0.0
        self.ends: list[tuple[float, float]] = []
        self.decisions: list[dict[str, Any]] = []

    @property
    def drift(self) -> list[dict[str, Any]]:
        """What was noticed."""
        return [notice for decision in self.decisions for notice in decision.get("drift") or []]

    def go(self, caller: Connection, reports: int, slower: float = 1.0) -> None:
        """Report so many times: a request every other time, and what has ended."""
        for _ in range(reports):
            self.now += 0.125
            over = [(at, took) for at, took in self.ends if at <= self.now]
            self.ends = [one for one in self.ends if one[0] > self.now]
            report = {
                "at": self.now,
                "arrived": [{"user": "web", "at": self.now}] if self.number % 2 == 0 else [],
                "finished": [{"server": "cpu-0", "at": at, "seconds": took} for at, took in over],
            }
            status, decision = caller.call("PUT", f"/runs/{self.run}/iterations/{self.number}", report)
            assert status == 201, decision
            self.decisions.append(decision)
            takes = [SECONDS[start["variant"]] * slower for start in decision["start"]]
            self.ends += [(self.now + took, took) for took in takes]
            self.number += 1


def ended(caller: Connection, job: str) -> dict[str, Any]:
    """What a job came to."""
    outcome: dict[str, Any] = {}

    def over() -> bool:
        outcome.update(caller.call("GET", f"/jobs/{job}")[1])
        return outcome["state"] in ("succeeded", "failed", "cancelled")

    wait_until(over, 600, what=f"job {job}")
    assert outcome["state"] == "succeeded", outcome
    result: dict[str, Any] = outcome["result"]
    return result


def learned(caller: Connection) -> int:
    """A workload whose agent was trained on servers as they are now, and answers; its version."""
    assert caller.call("POST", "/workloads", SPEC)[0] == 201
    assert caller.call("POST", f"/workloads/{NAME}/samples", samples())[0] == 201
    ended(caller, caller.call("POST", f"/workloads/{NAME}/models", {})[1]["id"])
    training = {"algorithm": "ppo", "budget": BUDGET}
    version: int = ended(caller, caller.call("POST", f"/workloads/{NAME}/agents", training)[1]["id"])["agent"]
    if caller.call("GET", f"/workloads/{NAME}")[1]["champion"] != version:
        assert caller.call("POST", f"/workloads/{NAME}/agents/{version}/promote", {})[0] == 200
    assert caller.call("PUT", f"/workloads/{NAME}/drift", WANTED)[0] == 200
    return version


def state(caller: Connection, *states: str) -> dict[str, Any]:
    """What is done about the drift, once it is in one of these states."""
    state: dict[str, Any] = {}

    def there() -> bool:
        state.update(next(iter(caller.call("GET", f"/workloads/{NAME}/drift")[1]["adaptations"]), {}))
        return state.get("state") in states

    wait_until(there, 600, what=f"the answer to be {' or '.join(states)}")
    return state


@pytest.mark.slow
def test_slower_servers_are_noticed_and_answered_through_a_kill(steward_factory: Start, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "data", **QUICK)
    with Connection(server.url) as caller:
        before = learned(caller)
        farm = Farm(caller.call("POST", "/runs", {"workload": NAME})[1]["id"])
        farm.go(caller, 150)
        assert farm.drift == []
        assert {(one["source"], one["agent"]) for one in farm.decisions} == {("agent", before)}
        farm.go(caller, 60, SLOWER)
    server.kill()
    server = steward_factory(tmp_path / "data", **QUICK)
    with Connection(server.url) as caller:
        farm.go(caller, 90, SLOWER)
        notice = farm.drift[0]
        assert (notice["stream"], notice["direction"]) == ("seconds.large", "up")
        drift = caller.call("GET", f"/runs/{farm.run}")[1]["drift"]
        assert [(one["iteration"], one["factor"]) for one in drift] == [
            (one["iteration"], one["factor"]) for one in farm.drift
        ]
        result = state(caller, "shadow", "rejected", "failed")
        assert result["state"] == "shadow", result["steps"]
        path = f"/workloads/{NAME}/models/{result['model']}/predict?variant=large&batch=1"
        predicted = caller.call("GET", path)[1]["seconds"]["mean"]
        assert predicted == pytest.approx(SECONDS["large"] * SLOWER, rel=0.1)
        farm.go(caller, 60, SLOWER)
        state(caller, "watched")
        wait_until(lambda: _answers(farm, caller, result["agent"]), 60, what="the new agent to answer")
        farm.go(caller, 300, SLOWER)
        done = state(caller, "kept", "rolled_back")
        assert [step["state"] for step in done["steps"]] == ["fitting", "training", "shadow", "watched", "kept"], done
        figures = done["steps"][-1]["figures"]
        assert figures["realised"]["low"] > figures["promised"]["low"] - WANTED["equivalence_margin"], figures
        report = caller.call("GET", f"/workloads/{NAME}/agents/{result['agent']}")[1]["report"]
        assert report["gain"]["low"] > 0  # over the agent that answered until then
        assert caller.call("GET", f"/workloads/{NAME}")[1]["champion"] == result["agent"] != before
        jobs = caller.call("GET", f"/jobs?workload={NAME}")[1]["items"]
        assert sorted(job["type"] for job in jobs) == ["fit", "fit", "train", "train"]


def _answers(farm: Farm, caller: Connection, version: int) -> bool:
    farm.go(caller, 1, SLOWER)
    return bool(farm.decisions[-1]["agent"] == version)
