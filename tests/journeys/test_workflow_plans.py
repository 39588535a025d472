"""A workflow served live by a real service: planned, followed, replanned, finished; beside HEFT on the same cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.queue import Layout
from app.kinds.workflow.spec import Spec
from app.kinds.workflow.trace import Trace
from tests.app.kinds.workflow.played import Cluster, Decide, Loss, Played, Report, play
from tests.app.workloads.test_endpoints import pointers
from tests.journeys.test_kill_api import Connection
from tests.servers import StewardServer, wait_until

Start = Callable[..., StewardServer]
SPEEDS = (0.5, 1.0, 1.0, 2.0)
INSTANCES = ("makeflow/blast-chameleon-small-001", "pegasus/epigenomics-chameleon-hep-1seq-100k-001")


def spec(name: str, strategy: str, trace: Trace) -> dict[str, Any]:
    """Eight nodes of three speeds; data take as long as work on the average."""
    speeds = np.resize(SPEEDS, 8)
    megabytes = trace.data.mean() / 1e6 / (trace.runtime.mean() / speeds.mean())
    nodes = [
        {"name": f"n{k}", "processors": 1, "speed": float(speed), "minimum": 1, "maximum": 1}
        | {"bandwidth_mbps": float(megabytes)}
        for k, speed in enumerate(speeds)
    ]
    weights = {"slowdown": 0.0, "makespan": 1.0}
    return {"name": name, "kind": "workflow", "nodes": nodes, "strategy": strategy, "weights": weights}


def registered(caller: Connection, body: dict[str, Any]) -> str:
    """A new run of a new workload."""
    assert caller.call("POST", "/workloads", body)[0] == 201
    status, run = caller.call("POST", "/runs", {"workload": body["name"]})
    assert status == 201
    return str(run["id"])


def reporting(caller: Connection, run: str) -> Decide:
    """Reports over HTTP."""

    def decide(iteration: int, report: Report) -> dict[str, Any]:
        status, decision = caller.call("PUT", f"/runs/{run}/iterations/{iteration}", report)
        assert status == 201, decision
        return dict(decision)

    return decide


def instance(shared_data: Path, name: str) -> Trace:
    trace = read_wfformat(shared_data / "wfinstances" / f"{name}.json.gz").trace
    return trace._replace(processors=np.ones(trace.tasks, np.int64), memory=np.full(trace.tasks, np.nan))


def cluster(trace: Trace, body: dict[str, Any], runtime: np.ndarray[Any, np.dtype[np.float64]]) -> Cluster:
    on = Layout(Spec.model_validate(body))
    return Cluster(trace, on.names, on.nodes, runtime)


def warmed(caller: Connection, name: str) -> None:
    """The first decisions of a workflow are HEFT's, until the search is there; it may have to be compiled."""
    nodes = [{"name": "n", "processors": 1, "minimum": 2, "maximum": 2}]
    run = registered(caller, {"name": name, "kind": "workflow", "nodes": nodes, "strategy": "agent"})
    queued = [{"id": "a", "processors": 1, "estimate": 10}, {"id": "b", "processors": 1, "parents": ["a"]}]
    visited = list[dict[str, Any]]()

    def planned() -> bool:
        number = len(visited)
        report = {"now": number, "delta": bool(number), **({} if number else {"queued": queued})}
        visited.append(reporting(caller, run)(number, report))
        return visited[-1]["reason"]["plan"] is not None

    wait_until(planned, 120, "a plan")
    first = visited[0]
    assert (first["source"], first["policy"], first["placements"][0]["task"]) == ("heuristic", "heft+easy", "a")
    assert "HEFT without a plan: the plan search is starting" in first["reason"]["text"]


def checked(played: Played) -> None:
    """Every decision says by whom and why; what is followed is better than HEFT's."""
    for decision in played.decisions:
        plan = decision["reason"]["plan"]
        if plan is None:
            continue
        assert plan["seconds"] <= plan["heft_seconds"] + 1e-9 or not plan["followed"]
        if plan["followed"]:
            assert (decision["source"], decision["policy"], decision["reason"]["strategy"]) == ("agent", "plan", "plan")
            assert "plan of " in decision["reason"]["text"]
            assert plan["because"] in decision["reason"]["text"]
        else:
            assert (decision["source"], decision["policy"]) == ("heuristic", "heft+easy")


@pytest.mark.slow
def test_workflows_are_planned_live_and_end_no_later_than_by_heft(
    steward_factory: Start, tmp_path: Path, shared_data: Path
) -> None:
    server = steward_factory(tmp_path / "data", "--workers", "0", wait="alive")
    with Connection(server.url) as caller:
        warmed(caller, "warm")
        for k, name in enumerate(INSTANCES):
            trace = instance(shared_data, name)
            ends = {}
            for strategy in ("heft", "agent"):
                body = spec(f"{strategy}-{k}", strategy, trace)
                run = registered(caller, body)
                played = play(cluster(trace, body, trace.runtime), reporting(caller, run))
                checked(played)
                ends[strategy] = played.makespan
            assert ends["agent"] <= ends["heft"] * (1 + 1e-9), name
            assert played.decisions[0]["reason"]["plan"]["seconds"] == pytest.approx(ends["agent"], rel=1e-3)


@pytest.mark.slow
def test_late_tasks_a_lost_node_and_a_restart_make_new_plans_and_every_task_ends(
    steward_factory: Start, tmp_path: Path, shared_data: Path
) -> None:
    trace = instance(shared_data, INSTANCES[1])
    body, folder = spec("flow", "agent", trace), tmp_path / "data"
    late = np.where(np.arange(trace.tasks) % 5 == 2, 3.0, 1.0)
    servers = [steward_factory(folder, "--workers", "0", wait="alive")]
    with Connection(servers[0].url) as caller:
        warmed(caller, "warm")
        run = registered(caller, body)

    def decide(iteration: int, report: Report) -> dict[str, Any]:
        if iteration == 1:
            servers[-1].kill()
            servers.append(steward_factory(folder, "--workers", "0", wait="alive"))
        with Connection(servers[-1].url) as caller:
            decision = reporting(caller, run)(iteration, report)
            if iteration == 1:
                warmed(caller, "warm-again")
        return decision

    lost = Loss(at=60.0, node="n3-0")
    played = play(cluster(trace, body, trace.runtime * late), decide, (lost,))
    checked(played)
    plans = [decision["reason"]["plan"] for decision in played.decisions]
    assert plans[0]["followed"]
    assert plans[0]["seconds"] > lost.at
    assert plans[1] == {**plans[0], "tasks": plans[0]["tasks"] - 1}  # from the database: no search was there yet
    reasons = {plan["because"] for plan in plans if plan is not None}
    assert "first plan" in reasons
    assert any("later than planned" in reason for reason in reasons)
    assert "n3-0 was lost" in reasons
    after = [one for d in played.decisions if d["now"] >= lost.at for one in d["placements"]]
    assert "n3-0" not in {one["node"] for one in after}


def test_what_can_not_be_is_refused_by_field(client: TestClient) -> None:
    nodes = [{"name": "n", "processors": 1, "minimum": 1, "maximum": 1}]
    body = {"name": "flow", "kind": "workflow", "nodes": nodes}
    answer = client.post("/workloads", json={**body, "strategy": "genetic"})
    assert (answer.status_code, pointers(answer)) == (422, ["/strategy"])
    assert "peft" in answer.json()["errors"][0]["message"]
    assert "agent" in answer.json()["errors"][0]["message"]
    assert client.post("/workloads", json={**body, "strategy": "agent"}).status_code == 201
    run = client.post("/runs", json={"workload": "flow"}).json()["id"]
    path = f"/runs/{run}/iterations/0"
    circle = [{"id": "a", "processors": 1, "parents": ["b"]}, {"id": "b", "processors": 1, "parents": ["a"]}]
    answer = client.put(path, json={"now": 0, "queued": circle})
    assert (answer.status_code, pointers(answer)) == (422, ["/queued/0/parents"])
    unknown = [{"id": "a", "processors": 1, "parents": [{"task": "b", "bytes": -1}]}]
    answer = client.put(path, json={"now": 0, "queued": unknown})
    assert answer.status_code == 422
    assert "/queued/0/parents/0" in pointers(answer)[0]
