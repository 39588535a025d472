"""Runs, jobs and evaluations are found by the first digits of their ids, in one's own tenant only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Connection, event, text

from app import queue
from app.database.engine import Database
from app.http.short_ids import MOST_NAMED
from app.jobs import service as jobs
from app.main import create_app
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.keys.conftest import make_key
from tests.batched import REPORTS, SPEC

MINE = "abcdef01" + 24 * "0"
NEAR = "abcdef02" + 24 * "0"
OTHERS = "abcdef03" + 24 * "0"
FAR = "123456" + 26 * "f"


@pytest.fixture
def plant(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Any]]:
    """Starts a run whose id is given."""

    def planted(identifier: str, **headers: str) -> dict[str, Any]:
        monkeypatch.setattr("app.runs.service.new_id", lambda: identifier)
        answer = client.post("/runs", json={"workload": "resnet18"}, headers=headers)
        assert answer.status_code == 201, answer.text
        body: dict[str, Any] = answer.json()
        return body

    return planted


@on_both
@pytest.mark.usefixtures("workload")
def test_a_run_is_read_reported_ended_and_deleted_by_its_first_digits(
    client: TestClient, plant: Callable[..., dict[str, Any]]
) -> None:
    plant(FAR)
    plant(MINE)
    assert client.get("/runs/abcdef").json()["id"] == MINE
    report = {**REPORTS[0], "allocation": {"gpus": 4}}
    reported = client.put("/runs/abcdef01/iterations/0", json=report)
    assert (reported.status_code, reported.json()["run"]) == (201, MINE)
    assert client.put(f"/runs/{MINE}/iterations/0", json=report).status_code == 200  # the same report
    assert len(client.get("/runs/abcdef0/iterations").json()["items"]) == 1
    assert client.get("/decision", params={"run": "abcdef"}).json()["run"] == MINE
    assert MINE in client.get("/ui/runs/abcdef").text
    assert client.patch("/runs/abcdef", json={"state": "failed"}).json()["outcome"] == "failed"
    assert client.delete("/runs/abcdef").status_code == 204
    assert [run["id"] for run in client.get("/runs").json()["items"]] == [FAR]


@pytest.mark.usefixtures("workload")
def test_what_is_ambiguous_names_the_candidates_and_what_is_too_short_is_unknown(
    client: TestClient, plant: Callable[..., dict[str, Any]]
) -> None:
    plant(MINE)
    plant(NEAR)
    answers = {"/path/run": client.get("/runs/abcdef"), "/query/run": client.get("/decision?run=abcdef")}
    for pointer, answer in answers.items():
        assert answer.status_code == 404
        assert f"several runs have ids that begin with 'abcdef': {MINE}, {NEAR}; give more" in answer.json()["detail"]
        (field,) = answer.json()["errors"]
        assert (field["pointer"], field["value"]) == (pointer, "abcdef")
    assert client.delete("/runs/abcdef0").status_code == 404
    assert client.get("/runs/abcdef02").json()["id"] == NEAR
    for unknown in ("abcde", "ABCDEF02", "abcdeg0", "abcdef03", f"{MINE}0", "%"):
        answer = client.get(f"/runs/{unknown}")
        assert (answer.status_code, "several" in answer.text) == (404, False), unknown


@pytest.mark.usefixtures("workload")
def test_many_candidates_are_not_all_named(client: TestClient, plant: Callable[..., dict[str, Any]]) -> None:
    ids = [f"abcdef{number:026x}" for number in range(MOST_NAMED + 2)]
    for identifier in ids:
        plant(identifier)
    detail = client.get("/runs/abcdef").json()["detail"]
    assert f"{ids[MOST_NAMED - 1]}, …; give more digits" in detail
    assert ids[MOST_NAMED] not in detail


def test_nobody_finds_anothers(settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    client = TestClient(create_app(settings, database))
    mine, others = (make_key(database, tenant, ["admin"]) for tenant in ("default", "other"))
    for identifier, headers in ((MINE, mine), (OTHERS, others)):
        assert client.post("/workloads", json=SPEC, headers=headers).status_code == 201
        monkeypatch.setattr("app.runs.service.new_id", lambda identifier=identifier: identifier)
        assert client.post("/runs", json={"workload": "resnet18"}, headers=headers).status_code == 201
    assert client.get("/runs/abcdef", headers=mine).json()["id"] == MINE
    assert client.get("/runs/abcdef", headers=others).json()["id"] == OTHERS
    assert client.delete("/runs/abcdef03", headers=mine).status_code == 404
    assert OTHERS not in client.get("/runs/abcdef03", headers=mine).text
    assert client.get("/runs/abcdef").status_code == 401  # nothing is looked up for whoever has no key


def test_jobs_and_evaluations_are_found_too(
    client: TestClient, database: Database, workload: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)
    publish_model(database, workload)
    publish_agent(database, workload, promote=True)
    with database.session() as session:
        ids = [
            jobs.create(session, job_type="fit", workload_id=workload_id, request={}, tenant="default").id
            for workload_id in session.scalars(text("SELECT id FROM workloads"))
            for _ in range(2)
        ]
    evaluation, other = (publish_evaluation(database, workload) for _ in range(2))
    for job in ids:
        assert client.get(f"/jobs/{job[:8]}").json()["id"] == job
        assert job in client.get(f"/ui/jobs/{job[:8]}").text
    assert client.post(f"/jobs/{ids[0][:8]}/cancel").json()["state"] == "cancelled"
    assert client.get(f"/jobs/{ids[1]}").json()["state"] == "queued"
    assert ids[0][:8] not in client.get(f"/jobs/{ids[0][:8]}/events").text.splitlines()
    assert client.get(f"/evaluations/{evaluation[:8]}").json()["id"] == evaluation
    assert client.delete(f"/evaluations/{evaluation[:8]}").status_code == 204
    assert [one["id"] for one in client.get("/evaluations").json()["items"]] == [other]


@pytest.fixture
def statements(backend: Database) -> Iterator[list[tuple[str, Any]]]:
    """Statements that the database runs, but for those of keys, which are read anew every few seconds."""
    visited: list[tuple[str, Any]] = []

    def note(_: Connection, __: object, statement: str, parameters: Any, *___: object) -> None:
        if statement.startswith("SELECT") and "FROM keys" not in statement:
            visited.append((statement, parameters))

    event.listen(backend.engine, "before_cursor_execute", note)
    yield visited
    event.remove(backend.engine, "before_cursor_execute", note)


@on_both
@pytest.mark.usefixtures("workload")
def test_a_full_id_costs_no_query_and_a_short_one_a_search_by_its_key(
    client: TestClient, backend: Database, plant: Callable[..., dict[str, Any]], statements: list[tuple[str, Any]]
) -> None:
    plant(MINE)
    del statements[:]
    assert client.get(f"/runs/{MINE}").is_success
    of_full = [statement for statement, _ in statements]
    del statements[:]
    assert client.get(f"/runs/{MINE[:8]}").is_success
    searches = [one for one in statements if one[0] not in of_full]
    assert len(statements) == len(of_full) + 1
    ((statement, parameters),) = searches
    with backend.engine.connect() as connection:
        postgres = connection.dialect.name == "postgresql"
        if postgres:
            connection.exec_driver_sql("SET enable_seqscan = off")  # which a small table would take
            connection.exec_driver_sql("ANALYZE runs")
        explain = "EXPLAIN" if postgres else "EXPLAIN QUERY PLAN"
        plan = " ".join(str(row) for row in connection.exec_driver_sql(f"{explain} {statement}", parameters))
    assert ("pk_runs" in plan) if postgres else ("sqlite_autoindex_runs_1 (id>? AND id<?)" in plan), plan
    assert "tenant_" not in plan
    assert "SCAN" not in plan.upper().replace("INDEX SCAN", "").replace("INDEX ONLY SCAN", ""), plan


def test_a_runs_token_reaches_it_by_its_full_id_only(settings: Settings, database: Database) -> None:
    client = TestClient(create_app(settings, database))
    admin = make_key(database, "default", ["admin"])
    client.post("/workloads", json=SPEC, headers=admin)
    bodies = [
        client.post("/runs", json={"workload": "resnet18", "token": True}, headers=admin).json() for _ in range(2)
    ]
    token = {"Authorization": f"Bearer {bodies[0]['token']}"}
    assert client.get(f"/runs/{bodies[0]['id']}", headers=token).is_success
    for run in bodies:
        assert client.get(f"/runs/{run['id'][:8]}", headers=token).status_code == 403
