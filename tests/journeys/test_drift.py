"""Servers that become slower: noticed, fitted and trained anew by a worker, through a kill of the service."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.app.drift.serving import SPEC
from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer, wait_until

Start = Callable[..., StewardServer]
NAME, SECONDS, SLOWER = SPEC.name, 0.02, 1.6


def samples() -> dict[str, Any]:
    """Twenty measured batches, and two minutes of requests."""
    rng = np.random.default_rng(0)
    arrived = np.cumsum(rng.exponential(0.25, 480))
    batches = [
        {"variant": "small", "batch": 1, "server": "cpu", "seconds": float(seconds)}
        for seconds in SECONDS * rng.lognormal(0, 0.05, 20)
    ]
    return {"samples": [{"execution": "old", "requests": [{"time": float(at)} for at in arrived], "batches": batches}]}


class Farm:
    """One server that does what it is told, over HTTP."""

    def __init__(self, run: str) -> None:
        self.run, self.number, self.now = run, 0, 0.0
        self.ends: list[tuple[float, float]] = []
        self.drift: list[dict[str, Any]] = []

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
            self.drift += decision.get("drift") or []
            self.ends += [(self.now + SECONDS * slower, SECONDS * slower) for _ in decision["start"]]
            self.number += 1


def ended(caller: Connection, job: str) -> dict[str, Any]:
    """A job at its end."""
    found: dict[str, Any] = {}

    def over() -> bool:
        found.update(caller.call("GET", f"/jobs/{job}")[1])
        return found["state"] in ("succeeded", "failed", "cancelled")

    wait_until(over, 600, what=f"job {job}")
    assert found["state"] == "succeeded", found
    return found


@pytest.mark.slow
def test_slower_servers_are_noticed_and_answered_through_a_kill(steward_factory: Start, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "data")
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", SPEC.model_dump(mode="json"))[0] == 201
        assert caller.call("POST", f"/workloads/{NAME}/samples", samples())[0] == 201
        ended(caller, caller.call("POST", f"/workloads/{NAME}/models", {})[1]["id"])
        wanted = {"respond": "retrain", "algorithm": "dqn", "budget": 1000}
        assert caller.call("PUT", f"/workloads/{NAME}/drift", wanted)[0] == 200
        farm = Farm(caller.call("POST", "/runs", {"workload": NAME})[1]["id"])
        farm.go(caller, 60)
        assert farm.drift == []
        farm.go(caller, 60, SLOWER)
    server.kill()
    server = steward_factory(tmp_path / "data")
    with Connection(server.url) as caller:
        farm.go(caller, 20, SLOWER)
        [notice] = farm.drift
        assert (notice["stream"], notice["direction"]) == ("seconds.small", "up")
        kept = caller.call("GET", f"/runs/{farm.run}")[1]["drift"]
        assert [(one["iteration"], one["factor"]) for one in kept] == [(notice["iteration"], notice["factor"])]
        state: dict[str, Any] = {}

        def judged() -> bool:
            state.update(next(iter(caller.call("GET", f"/workloads/{NAME}/drift")[1]["adaptations"]), {}))
            return state.get("state") not in (None, "fitting", "training")

        wait_until(judged, 600, what="the training to be judged")
        done = [step["state"] for step in state["steps"]]
        assert done[:2] == ["fitting", "training"], state
        predicted = caller.call("GET", f"/workloads/{NAME}/models/{state['model']}/predict?variant=small&batch=1")[1]
        assert predicted["seconds"]["mean"] == pytest.approx(SECONDS * SLOWER, rel=0.1)
        report = caller.call("GET", f"/workloads/{NAME}/agents/{state['agent']}")[1]["report"]
        assert state["state"] == ("shadow" if report["good_enough"] else "rejected")
        jobs = caller.call("GET", f"/jobs?workload={NAME}")[1]["items"]
        assert sorted(job["type"] for job in jobs) == ["fit", "fit", "train"]
