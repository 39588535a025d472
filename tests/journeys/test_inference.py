"""A serving team's way over HTTP: register, serve with decisions, through a kill of the service, and learn from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.database.engine import Database
from app.kinds.inference.example import SPEC
from tests.app.kinds.inference.published import publish
from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer

Start = Callable[..., StewardServer]
PER_USER = {**SPEC, "name": "fair", "policies": "per_user"}


def published(server: StewardServer, spec: dict[str, Any]) -> dict[str, bytes]:
    """A domain model and an agent, as workers publish them; its artifacts by role."""
    database = Database(server.database_url)
    parts = publish(database, spec)
    database.dispose()
    return parts


class Serving:
    """A server farm that does what it is told, in time that it makes up, and remembers every answer."""

    def __init__(self, run: str) -> None:
        self.run, self.now, self.reports = run, 0.0, list[tuple[dict[str, Any], dict[str, Any]]]()
        self.ends: dict[str, float] = {}
        self.requests: list[str] = []

    def go(self, caller: Connection, count: int) -> None:
        """Report ``count`` times: a request or two each, and what has ended."""
        for _ in range(count):
            number = len(self.reports)
            self.now += 0.02
            ended = sorted((at, server) for server, at in self.ends.items() if at <= self.now)
            report = {
                "at": self.now,
                "arrived": [{"user": "archive" if number % 3 else "shop", "id": f"r{number}", "at": self.now - 0.001}],
                "finished": [{"server": server, "at": at, "variant": "resnet18"} for at, server in ended],
            }
            status, decision = caller.call("PUT", f"/runs/{self.run}/iterations/{number}", report)
            assert status == 201, decision
            self.ends = {server: at for server, at in self.ends.items() if at > self.now}
            for start in decision["start"]:
                assert start["server"] not in self.ends
                self.ends[start["server"]] = self.now + 0.03
                self.requests += start["requests"]
            self.reports.append((report, decision))


@pytest.mark.slow
@pytest.mark.parametrize("url", [None, pytest.param("postgres_url", marks=pytest.mark.servers)])
def test_a_service_is_served_through_a_kill_and_its_run_becomes_samples(
    steward_factory: Start, tmp_path: Path, request: pytest.FixtureRequest, url: str | None
) -> None:
    settings = {} if url is None else {"database_url": request.getfixturevalue(url)}
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive", **settings)
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", SPEC)[0] == 201
        status, problem = caller.call("POST", "/workloads", {**SPEC, "name": "x", "batches": [4, 2]})
        assert (status, problem["errors"][0]["pointer"]) == (422, "/batches")
        status, started = caller.call("POST", "/runs", {"workload": "vision"})
        assert (status, started["decision"]["reason"]["code"]) == (201, "begun")
        serving = Serving(started["id"])
        serving.go(caller, 20)
        assert {decision["source"] for _, decision in serving.reports} == {"heuristic"}
    server.kill()
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive", **settings)
    with Connection(server.url) as caller:
        last, path = serving.reports[-1], f"/runs/{serving.run}/iterations/{len(serving.reports) - 1}"
        assert caller.call("PUT", path, last[0]) == (200, last[1])
        assert caller.call("PUT", path, {**last[0], "arrived": []})[0] == 409
        published(server, SPEC)
        assert caller.call("POST", "/workloads/vision/agents/1/promote", {})[0] == 200
        serving.go(caller, 20)
        assert serving.reports[-1][1]["source"] == "agent"
        assert len(serving.requests) == len(set(serving.requests))
        busy = {"at": serving.now, "finished": [{"server": "cpu-3", "at": serving.now}]}
        status, problem = caller.call("PUT", f"/runs/{serving.run}/iterations/{len(serving.reports)}", busy)
        assert status in (409, 422)
        assert problem["errors"][0]["pointer"] == "/finished/0/server"
        status, problem = caller.call("GET", "/decision?workload=vision&iteration=0")
        assert (status, problem["errors"][0]["pointer"]) == (422, "/query/workload")
        assert caller.call("GET", f"/decision?run={serving.run}") == (200, serving.reports[-1][1])
        assert caller.call("PATCH", f"/runs/{serving.run}", {"state": "finished"})[0] == 200
        status, samples = caller.call("GET", "/workloads/vision/samples")
    assert (status, [one["execution"] for one in samples["items"]]) == (200, [serving.run])
    assert samples["items"][0]["requests"]["count"] == 40


@pytest.mark.slow
def test_each_user_has_a_policy_of_its_own(steward_factory: Start, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive")
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", PER_USER)[0] == 201
        parts = published(server, PER_USER)
        policy = "/workloads/fair/agents/1/policy"
        for role, part in parts.items():
            caller.connection.request("GET", f"{policy}?role={role}")
            answer = caller.connection.getresponse()
            assert (answer.status, answer.read()) == (200, part)
            assert caller.call("POST", "/workloads/fair/agents/1/promote", {"role": role})[0] == 200
        status, problem = caller.call("GET", f"{policy}?role=nobody")
        assert (status, problem["errors"][0]["pointer"]) == (422, "/role")
        serving = Serving(caller.call("POST", "/runs", {"workload": "fair"})[1]["id"])
        serving.go(caller, 10)
        decision = serving.reports[-1][1]
    assert (decision["source"], decision["agent"], decision["policy"]) == ("agent", 1, "per_user: dqn")
