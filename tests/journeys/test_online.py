"""A service that is served while its agent goes on learning: windows pass, versions come in order, a kill costs one."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.database.engine import Database
from app.domain_models import service as domain_models
from app.kinds.inference.example import SPEC
from app.kinds.inference.layout import Layout
from app.kinds.inference.spec import InferenceSpec
from app.workloads import service as workloads
from tests.app.kinds.inference.runs import model
from tests.integration.caller import Caller
from tests.integration.processes import all_gone, family
from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer, wait_until

Start = Callable[..., StewardServer]
QUICK = {"heartbeat_seconds": "0.3", "sweep_seconds": "0.3", "requeue_seconds": "2", "policy_poll_seconds": "0.1"}
WINDOW_SECONDS = 5.0
BELIEVED, TRUE_SECONDS = 20.0, 60.0
UNANSWERED: dict[
    str, Any
] = {  # answers come too late, which the domain model doesn't know: more servers are for nothing
    **SPEC,
    "weights": {"quality": 1, "cost": 0.5, "fairness": 0, "switching": 0},
}


class Service:
    """A run that reports what comes, at its own pace, and remembers who answered."""

    def __init__(self, run: str) -> None:
        self.run, self.now, self.number = run, 0.0, 0
        self.busy: dict[str, dict[str, Any]] = {}
        self.answered: list[tuple[str, int | None]] = []

    def report(self, caller: Connection) -> None:
        """Ten seconds of the run: a request of each user in each, and what has ended."""
        time.sleep(0.05)
        self.now += 10.0
        arrived = [{"user": user, "at": self.now - 10 + i} for i in range(10) for user in ("shop", "archive")]
        ended = sorted(self.busy.values(), key=lambda one: float(one["at"]))
        finished = [one for one in ended if one["at"] <= self.now]
        report = {"at": self.now, "arrived": arrived, "finished": finished}
        status, decision = caller.call("PUT", f"/runs/{self.run}/iterations/{self.number}", report)
        assert status == 201, decision
        self.number += 1
        self.busy = {one["server"]: one for one in ended if one["at"] > self.now}
        for start in decision["start"]:
            fields = {"variant": start["variant"], "batch": len(start["requests"]), "seconds": TRUE_SECONDS}
            self.busy[start["server"]] = {"server": start["server"], "at": self.now + TRUE_SECONDS, **fields}
        self.answered.append((decision["source"], decision["agent"]))


def modelled(server: StewardServer) -> None:
    """A domain model, as workers publish it: batches take seconds, not a minute."""
    database = Database(server.database_url)
    with database.session() as session:
        workload = workloads.require(session, "default", "vision")
        quick = model(Layout(InferenceSpec.model_validate(UNANSWERED)))
        table = replace(quick, log_seconds=quick.log_seconds + np.log(BELIEVED)).to_bytes()
        domain_models.publish(session, workload.id, workload.spec_version, {"family": "none"}, table)
    database.dispose()


def served(caller: Connection, service: Service, job: str, windows: int) -> Iterator[dict[str, Any]]:
    """Serve until so many windows have passed; the job as it is after each report."""
    for _ in itertools.count():
        service.report(caller)
        result = caller.call("GET", f"/jobs/{job}")[1]
        assert result["state"] in ("queued", "running"), result
        yield result
        if result["progress"] * 1_000 >= windows:
            return


@pytest.mark.slow
def test_an_agent_goes_on_learning_through_a_kill(steward_factory: Start, tmp_path: Path) -> None:
    server = steward_factory(tmp_path / "data", **QUICK)
    online = {"window_seconds": WINDOW_SECONDS, "steps": 2_000, "windows": 1_000}
    with Connection(server.url) as caller:
        assert caller.call("POST", "/workloads", UNANSWERED)[0] == 201
        modelled(server)
        service = Service(caller.call("POST", "/runs", {"workload": "vision"})[1]["id"])
        for _ in range(60):
            service.report(caller)
        assert {source for source, _ in service.answered} == {"heuristic"}
        status, job = caller.call("POST", "/workloads/vision/agents", {"algorithm": "online", "online": online})
        assert status == 202, job
        waited = [one["not_before"] for one in served(caller, service, job["id"], 2)]
        assert any(waited)
    processes = family(server)
    server.kill()
    wait_until(lambda: all_gone(processes), 60, "the workers to end with their parent")
    server = steward_factory(tmp_path / "data", **QUICK)
    with Connection(server.url) as caller:
        list(served(caller, service, job["id"], 4))
    beside = Caller(server.url)
    beside.modelled(server)
    other = beside.wait(beside.train(algorithm="tabular_q", budget=1_000), 240)
    beside.http.close()
    assert other["state"] == "succeeded"  # it had its turn between two windows
    with Connection(server.url) as caller:
        assert caller.call("POST", f"/jobs/{job['id']}/cancel", {})[0] == 200
        wait_until(lambda: caller.call("GET", f"/jobs/{job['id']}")[1]["state"] == "cancelled", 120, "the cancelling")
        agents = caller.call("GET", "/workloads/vision/agents")[1]["items"]
    result = [one for one in reversed(agents) if one["report"].get("requested") == "online"]
    windows = [one["report"]["window"]["number"] for one in result]
    assert result
    assert windows == sorted(set(windows))  # one version a window at most, in order
    assert [one["report"]["window"]["rival"] for one in result] == [None, *(one["version"] for one in result[:-1])]
    assert all(one["report"]["gain"]["low"] > 0 for one in result)
    answering = [agent for source, agent in service.answered if source == "agent" and agent is not None]
    assert answering
    assert answering == sorted(answering)  # each answered until the next one did
    assert set(answering) <= {one["version"] for one in result}
