"""Deletions over HTTP: what is live is refused and named, what is not goes, and every process forgets it."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select

from app import queue
from app.database.engine import Database
from app.database.tables import Iteration, Job, JobEvent, Run
from app.main import create_app
from app.settings import Settings
from tests.app.both import on_both
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.evaluations.published import publish_evaluation
from tests.app.samples.bodies import csv_of, upload_csv

REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


def start(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def report(client: TestClient, run: str, number: int) -> int:
    return client.put(f"/runs/{run}/iterations/{number}", json=REPORT).status_code


def refused(client: TestClient, path: str) -> str:
    """Why a deletion is refused; what was to be deleted is still there."""
    answer = client.delete(path)
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json"), answer.text
    return str(answer.json()["detail"])


def gone(client: TestClient, path: str) -> None:
    """It goes, and is not found a second time."""
    assert client.delete(path).status_code == 204, client.delete(path).text
    assert client.delete(path).status_code == 404
    assert client.get(path).status_code == 404


@on_both
def test_a_run_goes_once_it_has_ended_and_every_process_forgets_it(
    client: TestClient, workload: str, settings: Settings, backend: Database
) -> None:
    other = TestClient(create_app(settings, backend))
    run = start(client, workload)
    assert (report(client, run, 0), report(other, run, 0)) == (201, 200)
    assert "it is running; finish or fail it first" in refused(client, f"/runs/{run}")
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    gone(client, f"/runs/{run}")
    for process in (client, other):
        assert [report(process, run, number) for number in (0, 0, 1)] == [404, 404, 404]
        assert process.get(f"/decision?run={run}").status_code == 404
    with backend.reading() as session:
        assert session.scalar(select(func.count()).select_from(Iteration)) == 0
    samples = client.get(f"/workloads/{workload}/samples").json()["items"]
    assert [one["execution"] for one in samples] == [run]


@on_both
def test_agents_that_something_rests_on_stay(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    for promote in (True, True, False, False, False):
        publish_agent(backend, workload, promote=promote)
    path = f"/workloads/{workload}/agents"
    run = start(client, workload, shadow=3)
    job = client.post("/evaluations", json={"workload": workload, "agents": [4]}).json()["id"]
    assert "the champion of role 'default'" in refused(client, f"{path}/2")
    assert "agent 2, the champion, would be rolled back to it" in refused(client, f"{path}/1")
    assert f"the shadow of run {run}" in refused(client, f"{path}/3")
    assert f"job {job} (evaluate) judges it" in refused(client, f"{path}/4")
    gone(client, f"{path}/5")
    assert publish_agent(backend, workload) == 6  # no number is given twice
    client.patch(f"/runs/{run}", json={"state": "failed"})
    client.post(f"/jobs/{job}/cancel")
    gone(client, f"{path}/3")
    gone(client, f"{path}/4")
    assert [one["version"] for one in client.get(path).json()["items"]] == [6, 2, 1]


@on_both
def test_a_rollback_skips_what_was_deleted(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    path = f"/workloads/{workload}/agents"
    for _ in range(4):
        publish_agent(backend, workload, promote=True)
    gone(client, f"{path}/2")
    assert [client.post(f"{path}/{one}/rollback").json()["champion"] for one in (4, 3, 1)] == [3, 1, None]


@on_both
def test_models_that_something_goes_by_stay(client: TestClient, workload: str, backend: Database) -> None:
    path = f"/workloads/{workload}/models"
    for _ in range(4):
        publish_model(backend, workload)
    assert "the newest, and no agent uses" in refused(client, f"{path}/4")
    publish_agent(backend, workload, promote=True)
    assert "agent 1 was trained on it" in refused(client, f"{path}/1")
    upload_csv(client, workload, csv_of({"a": 3}))
    job = client.post(f"/workloads/{workload}/agents", json={"model": 2}).json()["id"]
    assert f"job {job} (train) uses it" in refused(client, f"{path}/2")
    gone(client, f"{path}/3")
    gone(client, f"{path}/4")
    assert publish_model(backend, workload) == 5


@on_both
def test_samples_go_by_name_or_by_age_but_for_what_a_job_may_read(
    client: TestClient, workload: str, backend: Database
) -> None:
    path = f"/workloads/{workload}/samples"
    upload_csv(client, workload, csv_of({"a": 3, "b": 3, "c": 2}))
    job = client.post(f"/workloads/{workload}/models").json()["id"]
    assert f"job {job} (fit)" in refused(client, f"{path}?execution=a")
    client.post(f"/jobs/{job}/cancel")
    assert client.delete(f"{path}?execution=a").status_code == 204
    assert client.delete(f"{path}?execution=a").status_code == 404
    assert [one["execution"] for one in client.get(path).json()["items"]] == ["b", "c"]
    assert client.delete(f"{path}?before=2020-01-01T00:00:00Z").status_code == 204
    assert len(client.get(path).json()["items"]) == 2
    assert client.delete(f"{path}?before=2100-01-01T00:00:00Z").status_code == 204
    assert client.get(path).json()["items"] == []
    for query in ("", "?execution=a&before=2020-01-01T00:00:00Z", "?before=yesterday", "?before=2020-01-01T00:00:00"):
        assert client.delete(f"{path}{query}").status_code == 422


@on_both
def test_jobs_and_evaluations_go_when_they_are_over(client: TestClient, workload: str, backend: Database) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    job = client.post(f"/workloads/{workload}/models").json()["id"]
    assert "cancel it first" in refused(client, f"/jobs/{job}")
    client.post(f"/jobs/{job}/cancel")
    gone(client, f"/jobs/{job}")
    publish_model(backend, workload)
    publish_agent(backend, workload)
    gone(client, f"/evaluations/{publish_evaluation(backend, workload)}")
    with backend.reading() as session:
        assert [session.scalar(select(func.count()).select_from(table)) for table in (Job, JobEvent)] == [0, 0]


@on_both
def test_a_workload_with_something_live_needs_force(client: TestClient, workload: str, backend: Database) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    run, job = start(client, workload), client.post(f"/workloads/{workload}/models").json()["id"]
    detail = refused(client, f"/workloads/{workload}")
    assert f"run {run} is running" in detail
    assert f"job {job} (fit) has not ended" in detail
    assert "force=true" in detail
    assert report(client, run, 0) == 201
    assert client.delete(f"/workloads/{workload}?force=true").status_code == 204
    assert report(client, run, 0) == 404
    assert report(client, run, 1) == 404
    with backend.reading() as session:
        assert session.scalar(select(func.count()).select_from(Run)) == 0
