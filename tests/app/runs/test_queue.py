"""Runs of kind ``workflow`` over HTTP: queues are reported, placements are answered."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.main import create_app
from app.settings import Settings
from tests.app.both import on_both

POOL: dict[str, Any] = {
    "name": "pool",
    "kind": "workflow",
    "nodes": [{"name": "pool", "processors": 8, "minimum": 1, "maximum": 1}],
    "strategy": "fcfs",
}


def task(name: str, processors: int = 1, estimate: float | None = 100.0, **more: Any) -> dict[str, Any]:
    return {"id": name, "processors": processors, "estimate": estimate, **more}


@pytest.fixture
def run(client: TestClient) -> str:
    """A run of ``POOL``."""
    assert client.post("/workloads", json=POOL).status_code == 201
    started = client.post("/runs", json={"workload": "pool"})
    assert (started.status_code, started.json()["decision"]["reason"]["code"]) == (201, "begun")
    return str(started.json()["id"])


def put(client: TestClient, run: str, n: int, **report: Any) -> dict[str, Any]:
    """The decision for report n."""
    answer = client.put(f"/runs/{run}/iterations/{n}", json=report)
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def starts(decision: dict[str, Any]) -> list[str]:
    return [placement["task"] for placement in decision["placements"]]


@on_both
def test_a_queue_is_placed_with_its_reason_and_read_again(client: TestClient, run: str) -> None:
    queued = [task("a", 6), task("b", 4), task("c", 2, 90), task("d", 2, 300)]
    first = put(client, run, 0, now=10.0, queued=queued)
    assert first["placements"] == [
        {"task": "a", "node": "pool-0", "start": 10.0},
        {"task": "c", "node": "pool-0", "start": 10.0},
    ]
    reason = first["reason"]
    assert (reason["strategy"], reason["backfilling"], reason["code"]) == ("fcfs", "easy", "started")
    assert reason["window"] == {
        "task": "b",
        "node": "pool-0",
        "until": 110.0,
        "spare_processors": 4,
        "overtook": ["c"],
    }
    assert "b has a reservation on pool-0 at 1 min 50 s of the run" in reason["text"]
    assert (reason["first"]["task"], reason["runner_up"]["task"]) == ("a", "b")
    again = client.put(f"/runs/{run}/iterations/0", json={"now": 10.0, "queued": queued})
    assert (again.status_code, again.json()) == (200, first)
    assert client.get(f"/decision?run={run}").json() == first
    assert client.get(f"/decision?run={run}&iteration=0").json() == first


@pytest.mark.parametrize(
    ("processors", "who"),
    [(6, " or need at most 2 processors there"), (7, " or need at most 1 processor there"), (8, "")],
)
def test_a_reservation_says_who_may_overtake(client: TestClient, run: str, processors: int, who: str) -> None:
    decision = put(client, run, 0, now=10.0, queued=[task("a", 6), task("b", processors)])
    assert f"of the run; tasks that end by then{who} can be backfilled" in decision["reason"]["text"]


def test_a_delta_and_a_whole_report_lead_to_the_same_decisions(client: TestClient, run: str) -> None:
    other = client.post("/runs", json={"workload": "pool"}).json()["id"]
    queued = [task("a", 8), task("b", 4, 50), task("c", 6)]
    ran = {"id": "a", "node": "pool-0", "start": 0.0}
    whole: list[dict[str, Any]] = [
        {"now": 0.0, "queued": queued},
        {"now": 1.0, "queued": queued[1:], "running": [ran]},
        {"now": 90.0, "queued": [*queued[1:], task("d", 2)], "finished": [{"id": "a", "end": 90.0}]},
    ]
    deltas: list[dict[str, Any]] = [
        whole[0],
        {"now": 1.0, "delta": True, "running": [ran]},
        {"now": 90.0, "delta": True, "queued": [task("d", 2)], "finished": [{"id": "a", "end": 90.0}]},
    ]
    for n in range(3):
        one, two = put(client, run, n, **whole[n]), put(client, other, n, **deltas[n])
        assert (one["placements"], one["reason"]) == (two["placements"], two["reason"])
    assert starts(one) == ["b", "d"]


@on_both
def test_a_run_goes_on_in_another_process(client: TestClient, run: str, settings: Settings, backend: Database) -> None:
    put(client, run, 0, now=0.0, queued=[task("a", 6), task("b", 6, user="ann", parents=[{"task": "a", "bytes": 5}])])
    put(client, run, 1, now=0.0, delta=True, running=[{"id": "a", "node": "pool-0", "start": 0.0}])
    other = TestClient(create_app(settings, backend))
    ended = put(other, run, 2, now=50.0, delta=True, finished=[{"id": "a", "end": 50.0}])
    assert starts(ended) == ["b"]
    late = client.put(f"/runs/{run}/iterations/2", json={"now": 51.0, "delta": True})
    assert late.status_code == 409
    assert starts(put(client, run, 3, now=60.0, delta=True)) == ["b"]


def test_children_wait_for_their_parents(client: TestClient, run: str) -> None:
    queued = [task("b", parents=["a"]), task("a"), task("c", parents=["a", "b"])]
    assert starts(put(client, run, 0, now=0.0, queued=queued)) == ["a"]
    second = put(client, run, 1, now=1.0, delta=True, running=[{"id": "a", "node": "pool-0", "start": 0.0}])
    assert (starts(second), second["reason"]["code"], second["noop"]) == ([], "nothing_ready", True)
    third = put(client, run, 2, now=9.0, delta=True, finished=[{"id": "a", "end": 9.0}])
    assert starts(third) == ["b"]


def test_an_ended_run_is_a_sample(client: TestClient, run: str) -> None:
    put(client, run, 0, now=5.0, queued=[task("a", 6, user="ann"), task("b", 6)])
    put(client, run, 1, now=6.0, delta=True, running=[{"id": "a", "node": "pool-0", "start": 5.5}])
    put(client, run, 2, now=20.0, delta=True, finished=[{"id": "a", "end": 15.5}])
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).json()["state"] == "finished"
    samples = client.get("/workloads/pool/samples").json()["items"]
    assert [(sample["execution"], sample["source"], sample["iterations"]) for sample in samples] == [(run, "run", 1)]
    assert samples[0]["seconds"] == 10.0


def test_a_state_in_full_is_reported_not_asked_for(client: TestClient, run: str) -> None:
    answer = client.get("/decision?workload=pool&iteration=1")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/query/workload")
    assert "of kind workflow get decisions in runs only: start one with POST /runs" in answer.json()["detail"]


def test_what_a_run_of_this_kind_has_not_is_refused(client: TestClient, run: str) -> None:
    body = {"workload": "pool", "targets": {"iteration_seconds": 5}, "features": {"batch": 1}}
    answer = client.post("/runs", json=body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/targets", "/features"]


RUNNING = {"id": "a", "node": "pool-0", "start": 0.0}


@pytest.mark.parametrize(
    ("report", "status", "pointer", "word"),
    [
        ({"now": 9.0, "finished": [{"id": "b", "end": 8.0}]}, 409, "/finished/0/id", "never started"),
        ({"now": 9.0, "finished": [{"id": "z", "end": 8.0}]}, 409, "/finished/0/id", "is neither pending nor running"),
        ({"now": 9.0, "running": [{"id": "b", "node": "x-0", "start": 5.0}]}, 422, "/running/0/node", "pool-0"),
        ({"now": 9.0, "running": [{"id": "a", "node": "pool-1"}]}, 422, "/running/0/node", "unknown node"),
        ({"now": 9.0, "running": [{"id": "b", "node": "pool-0"}]}, 422, "/running/0/start", "needed"),
        (
            {"now": 9.0, "running": [{"id": "b", "node": "pool-0", "start": 99.0}]},
            422,
            "/running/0/start",
            "(the time of the report)",
        ),
        ({"now": 9.0, "running": [{"id": "b", "node": "pool-0", "start": 5.0}]}, 422, "/running", "need more"),
        ({"now": 9.0, "running": [{"id": "q", "node": "pool-0", "start": 5.0}]}, 422, "/running/0/processors", ""),
        ({"now": 9.0, "queued": [task("c"), task("c")]}, 422, "/queued/1/id", "twice"),
        ({"now": 9.0, "queued": [task("a")], "finished": [{"id": "a", "end": 8.0}]}, 422, "/finished/0/id", "twice"),
        ({"now": 9.0, "queued": [task("b")]}, 409, "/queued/0/id", "already"),
        ({"now": 9.0, "queued": [task("c", parents=["z"])]}, 422, "/queued/0/parents/0", "unknown task"),
        ({"now": 9.0, "queued": [task("c", parents=["c"])]}, 422, "/queued/0/parents", "cycle"),
        (
            {"now": 9.0, "queued": [task("c", parents=["d"]), task("d", parents=["e"]), task("e", parents=["c"])]},
            422,
            "/queued/0/parents",
            "cycle",
        ),
        ({"now": 9.0, "queued": [task("c", 9)]}, 422, "/queued/0/processors", "largest node"),
        ({"now": 9.0, "queued": [{"id": "c"}]}, 422, "/queued/0/processors", "needed"),
        ({"now": 9.0, "queued": [task("c", submit=10.0)]}, 422, "/queued/0/submit", "at most"),
        ({"now": 9.0, "queued": [task("c", 0)]}, 422, "/queued/0/processors", "greater"),
        ({"now": 9.0, "queued": [task("c", estimate=-5)]}, 422, "/queued/0/estimate", "greater"),
        ({"now": 9.0, "queued": [task("c", colour=1)]}, 422, "/queued/0/colour", "extra"),
        ({"now": 1.0}, 409, "/now", "(the last time reported)"),
        ({"now": -1.0}, 422, "/now", "greater"),
        ({"now": 9.0, "finished": [{"id": "a", "end": 1.0}]}, 422, "/finished/0/end", "(its start)"),
        ({"now": 9.0, "finished": [{"id": "a", "end": 10.0}]}, 422, "/finished/0/end", "(the time of the report)"),
        ({"now": 9.0, "withdrawn": ["z"]}, 409, "/withdrawn/0", "neither"),
        ({"now": 9.0, "withdrawn": ["b"]}, 409, "/withdrawn", "withdraw it too"),
        ({"now": 9.0, "nodes": [{"name": "x-0", "state": "up"}]}, 422, "/nodes/0/name", "unknown node"),
        ({"now": 9.0, "nodes": [{"name": "pool-0", "state": "lost"}]}, 422, "/nodes/0/state", "off"),
        ({"now": 9.0, "delta": False}, 409, "/running", "leaves out"),
        ({"allocation": {}, "metrics": {}}, 422, "/now", "required"),
    ],
)
def test_a_report_that_cannot_be_is_refused_by_field_and_leaves_no_trace(
    client: TestClient, run: str, report: dict[str, Any], status: int, pointer: str, word: str
) -> None:
    queued = [task("a", 6), task("b", 6), task("child", parents=["b"])]
    put(client, run, 0, now=2.0, queued=queued)
    put(client, run, 1, now=5.0, delta=True, running=[{**RUNNING, "start": 2.0}])
    body = {"delta": True, **report} if "now" in report else report
    answer = client.put(f"/runs/{run}/iterations/2", json=body)
    assert answer.status_code == status, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]], answer.text
    assert word in answer.text
    assert put(client, run, 2, now=9.0, delta=True)["reason"]["window"]["task"] == "b"


@pytest.mark.parametrize(
    ("report", "pointer"),
    [
        ({"now": 1.7e12}, "/now"),
        ({"now": 9.0, "queued": [task(f"t{i}", estimate=3.6e6) for i in range(5)]}, "/queued"),
    ],
)
def test_what_looks_like_another_unit_is_warned_of(
    client: TestClient, run: str, report: dict[str, Any], pointer: str
) -> None:
    warned = put(client, run, 0, **report)["warnings"]
    assert ([one["pointer"] for one in warned], "milliseconds" in warned[0]["message"]) == ([pointer], True)
