"""Kinds that are not there, or can't be used."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app import startup
from app.database.engine import Database
from app.database.tables import Execution, Iteration, Run, Workload
from app.kinds import registry
from app.kinds.registry import KINDS, BrokenKind, MissingKind, load_kinds, read_spec
from app.main import create_app
from app.settings import Settings
from app.workloads.snapshot import WorkloadCache
from tests.app.runs.reporting import decide_anew
from tests.app.samples.bodies import csv_of, upload_csv


def point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, registry.GROUP)


def test_no_kind_at_all_says_what_to_do() -> None:
    with pytest.raises(BrokenKind, match="install it anew"):
        load_kinds([])


@pytest.mark.parametrize(
    ("name", "value"), [("x", "app.kinds.nowhere:KIND"), ("x", "app.kinds.iterative.kind:KIND"), ("x", "json:KIND")]
)
def test_a_kind_that_cannot_be_used_is_named(name: str, value: str) -> None:
    with pytest.raises(BrokenKind, match=f"kind {name} \\({value}\\)"):
        load_kinds([point(name, value)])


def test_a_kind_that_is_gone_is_named() -> None:
    with pytest.raises(MissingKind, match="kind 'gone' is not installed here"):
        read_spec({"kind": "gone", "name": "w"})


def test_start_up_tells_it_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import builtins

    real = builtins.__import__

    def broken(name: str, *rest: object) -> object:
        if name == "app.kinds.registry":
            raise BrokenKind("kind x (nowhere:KIND) can't be imported")
        return real(name, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(startup.StartupError, match="kind x"):
        startup.check_kinds()


@pytest.fixture
def run(client: TestClient, workload: str, spec: dict[str, Any]) -> str:
    """A run of workload ``orphan``, which has a sample, too; it stands beside another workload."""
    assert client.post("/workloads", json={**spec, "name": "orphan"}).status_code == 201
    upload_csv(client, "orphan", csv_of({"a": 3}))
    started: str = client.post("/runs", json={"workload": "orphan"}).json()["id"]
    client.post("/runs", json={"workload": workload})
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
    assert client.put(f"/runs/{started}/iterations/0", json=report).status_code == 201
    return started


@pytest.fixture
def orphan(backend: Database, run: str) -> str:
    """That workload, whose kind is not installed any more."""
    with backend.session() as session:
        row = session.query(Workload).filter_by(name="orphan").one()
        row.kind, row.spec = "gone", {**row.spec, "kind": "gone"}
        stored = session.get_one(Run, run)
        stored.decision = {**stored.decision, "kind": "gone"}
        decide_anew(session.get_one(Iteration, (run, 0)), kind="gone")
    return "orphan"


def test_what_is_stored_of_a_kind_that_is_gone_is_a_conflict_and_can_be_deleted(
    backend: Database, settings: Settings, workload: str, orphan: str, run: str
) -> None:
    client = TestClient(create_app(settings, backend))
    for path in (f"/workloads/{orphan}", f"/decision?workload={orphan}", f"/decision?run={run}", f"/runs/{run}"):
        answer = client.get(path)
        assert (answer.status_code, "'gone' is not installed" in answer.json()["detail"]) == (409, True)
    answer = client.get(f"/workloads/{orphan}/samples", headers={"Accept": "text/csv"})
    assert (answer.status_code, "'gone' is not installed" in answer.json()["detail"]) == (409, True)
    assert client.get(f"/workloads/{workload}").status_code == 200
    assert client.delete(f"/workloads/{orphan}?force=true").status_code == 204


def test_lists_hold_what_is_stored_of_a_kind_that_is_gone(
    client: TestClient, workload: str, orphan: str, run: str
) -> None:
    gone = "'gone' is not installed"
    first, second = client.get("/workloads").json()["items"]
    assert (first["name"], first["spec"]["iterations"], gone in first["problem"]) == (orphan, 90, True)
    assert (second["name"], second["problem"]) == (workload, None)
    (execution,) = client.get(f"/workloads/{orphan}/samples?reports=true").json()["items"]
    assert (execution["execution"], execution["iterations"], gone in execution["problem"]) == ("a", 3, True)
    (iteration,) = client.get(f"/runs/{run}/iterations").json()["items"]
    assert (iteration["report"]["allocation"], gone in iteration["problem"]) == ({"gpus": 4.0}, True)
    for nouns in ("models", "agents", "exogenous"):
        assert client.get(f"/workloads/{orphan}/{nouns}").json()["items"] == []
    page = client.get("/")
    assert (page.status_code, page.text.count(gone.replace("'", "&#39;"))) == (200, 2)
    assert "steward_jobs" in client.get("/metrics").text


def test_a_stored_row_that_is_broken_is_no_fault_of_the_callers(
    client: TestClient, backend: Database, run: str, caplog: pytest.LogCaptureFixture
) -> None:
    with backend.session() as session:
        row = session.query(Workload).filter_by(name="orphan").one()
        row.spec = {name: part for name, part in row.spec.items() if name != "resources"}
        iteration = session.get_one(Iteration, (run, 0))
        iteration.packed = Iteration.of(run, 0, iteration.report, {"kind": "iterative"}).packed
    for path, field in (("/workloads/orphan", "/resources"), (f"/runs/{run}", "/allocation")):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["type"]) == (500, "/problems/broken-row")
        assert f"{field}: Field required" in answer.json()["detail"]
        assert f"{field}: Field required" in caplog.text
    assert "/resources" in client.get("/workloads").json()["items"][0]["problem"]
    assert "/allocation" in client.get(f"/runs/{run}/iterations").json()["items"][0]["problem"]
    assert client.get("/").status_code == 200


def test_a_stored_execution_that_is_broken_stands_in_its_list(client: TestClient, backend: Database, run: str) -> None:
    with backend.session() as session:
        session.query(Execution).one().summary = {"seconds": "long"}
    (execution,) = client.get("/workloads/orphan/samples").json()["items"]
    assert (execution["execution"], "/seconds" in execution["problem"]) == ("a", True)


def test_a_change_that_cannot_be_loaded_ends_no_looking(
    backend: Database, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = WorkloadCache(backend, 60.0)
    before = cache.get(workload)
    with backend.session() as session:
        session.query(Workload).filter_by(name=workload, tenant="default").one().revision += 1
    kind = before.spec.kind
    monkeypatch.setitem(KINDS, kind, replace(KINDS[kind], layout=lambda _spec: 1 / 0))
    cache.poll()
    assert cache.peek(workload) is before
    monkeypatch.undo()
    cache.poll()
    assert cache.get(workload).revision == before.revision + 1
