"""A cluster that shares its GPUs among runs of a registered training, which has a target of its own, and other jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.batched import EXAMPLE
from tests.journeys.test_outside_kind import Caller
from tests.servers import StewardServer, wait_until

NAME = EXAMPLE.spec["name"]
LAB = {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 2, "gpus": 4}], "members": [NAME]}
OTHERS: list[dict[str, Any]] = [{"job": f"other-{n}", "application": "unknown", "gpus": 1} for n in range(4)]
JOBS = [{"job": "mine", "application": NAME, "gpus": 1}, *OTHERS]


class Reporting:
    """A launcher that reports every second that nothing has happened; what each job has."""

    def __init__(self, call: Caller) -> None:
        self.call, self.path = call, f"/runs/{call('POST', '/runs', 201, json={'workload': 'lab'})['id']}/iterations"
        self.gpus: dict[str, int] = {}
        self.changes: dict[str, dict[str, Any]] = {}
        self.count = 0

    def report(self, **fields: Any) -> str:
        """The rule that answers."""
        decision = self.call("PUT", f"{self.path}/{self.count}", 201, json={"at": self.count, **fields})
        self.count += 1
        for change in decision["changes"]:
            self.gpus[change["job"]], self.changes[change["job"]] = change["gpus"], change
        return str(decision["rule"])

    def until_mine_has(self, gpus: int) -> dict[str, Any]:
        """Report until caches have heard of a change, and the member's run has so many; what was said of it."""
        wait_until(lambda: bool(self.report()) and self.gpus["mine"] == gpus, 60, f"{gpus} GPUs")
        return self.changes["mine"]


@pytest.mark.slow
def test_a_run_of_a_member_is_given_what_its_own_target_takes(
    steward_factory: Callable[..., StewardServer],
) -> None:
    server = steward_factory()
    with httpx.Client(base_url=server.url, timeout=120) as client:
        call = Caller(client)
        call("POST", "/workloads", 422, json=LAB)
        call("POST", "/workloads", 201, json=EXAMPLE.spec)
        call("POST", "/workloads", 201, json=LAB)
        call("DELETE", f"/workloads/{NAME}", 409)
        run = Reporting(call)
        assert run.report(submitted=JOBS) == "soonest"
        assert run.gpus["mine"] == 1
        csv = {"Content-Type": "text/csv"}
        call("POST", f"/workloads/{NAME}/samples", 201, content=EXAMPLE.samples["text/csv"], headers=csv)
        call.job(f"/workloads/{NAME}/models", {})
        grown = run.until_mine_has(4)
        assert run.report() == "soonest"
        assert grown["seconds_left"] < grown["seconds_wanted"] < 1800
        assert "deadline in" in grown["text"]
        call("PATCH", f"/workloads/{NAME}", json={"targets": {"iteration_seconds": 900}})
        call("PATCH", "/workloads/lab", json={"weights": {"deadlines": 4}})
        hurried = run.until_mine_has(8)
        assert hurried["seconds_left"] < hurried["seconds_wanted"] < 900
        assert {run.gpus[one["job"]] for one in OTHERS} == {0}
