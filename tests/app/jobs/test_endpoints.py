from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from app import queue
from app.database.engine import Database
from app.database.tables import Job
from app.jobs import lease as leases
from app.jobs import repository
from app.kinds.registry import KINDS
from app.settings import Settings
from tests.app.jobs.test_lease import make


@pytest.fixture(autouse=True)
def _no_broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue, "enqueue", lambda _task, _identifier: None)


def frames(text: str) -> list[tuple[int, str, dict[str, object]]]:
    frames = []
    for frame in filter(None, text.split("\n\n")):
        lines = dict(line.split(": ", 1) for line in frame.splitlines() if not line.startswith(":"))
        if lines:
            frames.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return frames


def test_an_unknown_job_is_a_problem(client: TestClient) -> None:
    for method, path in [("GET", "/jobs/nope"), ("GET", "/jobs/nope/events"), ("POST", "/jobs/nope/cancel")]:
        answer = client.request(method, path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"
        assert "nope" in answer.json()["detail"]


def test_a_job_is_read_and_listed(client: TestClient, database: Database) -> None:
    first, second = make(database, "a"), make(database, "b")
    job = client.get(f"/jobs/{first}").json()
    assert (job["state"], job["type"], job["workload"], job["progress"]) == ("queued", "train", "a", 0.0)
    assert job["priority"] == 3
    assert [item["id"] for item in client.get("/jobs").json()["items"]] == [second, first]
    assert [item["id"] for item in client.get("/jobs?workload=a").json()["items"]] == [first]
    assert client.get("/jobs?state=running").json()["items"] == []
    assert client.get("/jobs?workload=none").status_code == 404


def test_a_jobs_priority_is_shown(client: TestClient) -> None:
    example = KINDS["iterative"].example
    workload = f"/workloads/{client.post('/workloads', json=example.spec).json()['name']}"
    samples, form = example.samples["application/json"], {"content-type": "application/json"}
    assert client.post(f"{workload}/samples", content=samples, headers=form).status_code == 201
    assert client.post(f"{workload}/models", json={"priority": 7}).json()["priority"] == 7
    assert [job["priority"] for job in client.get("/jobs").json()["items"]] == [7]


def test_pages_of_jobs_follow_the_next_link(client: TestClient, database: Database) -> None:
    result = {make(database, f"w{i}") for i in range(5)}
    visited: list[str] = []
    link = "/jobs?limit=2"
    while link:
        page = client.get(link).json()
        visited += [item["id"] for item in page["items"]]
        link = page["next"]
    assert len(visited) == 5
    assert set(visited) == result


def test_cancelling_twice_changes_nothing_and_a_finished_job_refuses(client: TestClient, database: Database) -> None:
    waiting, done = make(database, "a"), make(database, "b")
    assert client.post(f"/jobs/{waiting}/cancel").json()["state"] == "cancelled"
    assert client.post(f"/jobs/{waiting}/cancel").status_code == 200
    lease = leases.claim(database, done, "w", Settings())
    assert lease is not None
    with database.session() as session:
        leases.finish(session, lease, {"agent": 1})
    answer = client.post(f"/jobs/{done}/cancel")
    assert answer.status_code == 409
    assert "succeeded" in answer.json()["detail"]


def test_events_are_streamed_to_the_end_and_resumed(client: TestClient, database: Database) -> None:
    job = make(database)
    lease = leases.claim(database, job, "w", Settings())
    assert lease is not None

    def work() -> None:
        for step in range(1, 4):
            leases.progress(database, lease, step / 4, 1.0, {"steps": step}, None)
        with database.session() as session:
            leases.finish(session, lease, {"agent": 7})

    worker = threading.Timer(0.3, work)
    worker.start()
    answer = client.get(f"/jobs/{job}/events")
    worker.join()
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = frames(answer.text)
    assert [number for number, _, _ in events] == [1, 2, 3, 4, 5, 6]
    assert [name for _, name, _ in events] == ["queued", "running", "running", "running", "running", "succeeded"]
    assert [data.get("steps") for _, _, data in events] == [None, None, 1, 2, 3, None]
    assert events[-1][2]["result"] == {"agent": 7}
    resumed = frames(client.get(f"/jobs/{job}/events", headers={"Last-Event-ID": "4"}).text)
    assert resumed == events[4:]


@pytest.mark.parametrize("last", ["x", "-1", "99999999999999"])
def test_a_strange_last_event_id_names_its_header(client: TestClient, database: Database, last: str) -> None:
    answer = client.get(f"/jobs/{make(database)}/events", headers={"Last-Event-ID": last})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/header/Last-Event-ID"


def test_a_job_whose_workload_goes_meanwhile_is_not_there(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job and its workload's name are read one after the other."""
    first, second = make(database, "a"), make(database, "b")
    names = repository.workload_names

    def without_first(session: Session, ids: Sequence[str]) -> dict[str, str]:
        gone = session.get_one(Job, first).workload_id
        return {identifier: name for identifier, name in names(session, ids).items() if identifier != gone}

    monkeypatch.setattr(repository, "workload_names", without_first)
    assert client.get(f"/jobs/{first}").status_code == 404
    assert [job["id"] for job in client.get("/jobs").json()["items"]] == [second]
