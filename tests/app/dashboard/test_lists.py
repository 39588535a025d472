"""Lists of the dashboard: all of them, those of a workload, those in a state, and where they go on."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.dashboard import tables, workload_page
from app.dashboard.job_page import page as job_page
from app.dashboard.tables import JobQuery, RunQuery
from app.database.base import utc_now
from app.database.engine import Database
from app.jobs import repository
from tests.app.both import on_both
from tests.app.dashboard.test_pages import shown

OTHER = "another"


def started(client: TestClient, workload: str, count: int = 1) -> list[str]:
    return [str(client.post("/runs", json={"workload": workload}).json()["id"]) for _ in range(count)]


def listed(client: TestClient, path: str) -> set[str]:
    return {link.rpartition("/")[2] for link in shown(client, path).links if link.startswith("/ui/runs/")}


@pytest.fixture
def other(client: TestClient, spec: dict[str, Any], workload: str) -> str:
    """Another workload beside the first."""
    assert client.post("/workloads", json={**spec, "name": OTHER}).status_code == 201
    return OTHER


@on_both
def test_runs_are_chosen_by_workload_and_state(client: TestClient, workload: str, other: str) -> None:
    (going, over), (beside,) = started(client, workload, 2), started(client, other)
    assert client.patch(f"/runs/{over}", json={"state": "finished"}).status_code == 200
    assert listed(client, "/ui/runs") == {going, over, beside}
    assert listed(client, f"/ui/runs?workload={workload}") == {going, over}
    assert listed(client, f"/ui/runs?workload={workload}&state=finished") == {over}
    assert listed(client, "/ui/runs?state=running") == {going, beside}
    assert "Nothing matches." in shown(client, f"/ui/runs?workload={other}&state=failed").texts
    assert client.get("/ui/runs?state=lost").status_code == 422


def test_what_was_chosen_holds_for_older_ones(
    client: TestClient, workload: str, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "LISTS_ROWS", 2)
    monkeypatch.setattr(workload_page, "RUNS", 2)
    first, *_ = started(client, workload, 3)
    started(client, other)
    path = f"/ui/runs?workload={workload}&state=running"
    (older,) = (link for link in shown(client, path).links if "cursor=" in link)
    assert older.startswith(path)
    assert listed(client, older) == {first}
    (older,) = (link for link in shown(client, f"/ui/workloads/{workload}").links if "cursor=" in link)
    assert listed(client, older) == {first}


def test_addresses_name_what_is_chosen_and_no_more() -> None:
    chosen = RunQuery("resnet18", "running").chosen
    _, outcome = chosen.choices
    assert JobQuery().chosen.address() == "/ui/jobs"
    assert chosen.address(state=None) == "/ui/runs?workload=resnet18"
    assert chosen.older("a=&b") == "/ui/runs?workload=resnet18&state=running&cursor=a%3D%26b"
    assert chosen.older(None) is None
    assert chosen.address(path=f"{chosen.path}.csv") == "/ui/runs.csv?workload=resnet18&state=running"
    assert chosen.toggled(outcome, "at_risk") == "/ui/runs?workload=resnet18&state=running&outcome=at_risk"
    both = RunQuery(outcome=["missed", "at_risk"]).chosen
    assert both.toggled(outcome, "at_risk") == "/ui/runs?outcome=missed"
    assert both.toggled(outcome, "met") == "/ui/runs?outcome=missed&outcome=at_risk&outcome=met"
    assert both.toggled(outcome, None) == "/ui/runs"
    assert both.sorted_by("started") == "/ui/runs?outcome=missed&outcome=at_risk&sort=started"
    dearest = RunQuery(sort="-cost").chosen
    assert (dearest.sorted_by("cost"), dearest.sorted_by("started")) == ("/ui/runs?sort=cost", "/ui/runs")
    assert (dearest.direction("cost"), dearest.direction("started")) == ("descending", "none")
    first, second = JobQuery("resnet18", "failed").chosen.choices
    assert JobQuery("resnet18", "failed").chosen.toggled(first, "queued") == "/ui/jobs?workload=resnet18&state=queued"
    assert JobQuery(type="fit").chosen.toggled(second, "fit") == "/ui/jobs"


def test_nothing_is_advised_that_is_being_seen_to(client: TestClient) -> None:
    client.post("/ui/examples/iterative")
    texts = set(shown(client).texts)
    assert "fitting" in texts
    assert not any("steward model create" in text for text in shown(client, "/ui/workloads/resnet18").texts)
    (job,) = client.get("/jobs").json()["items"]
    again = client.get("/ui/workloads/resnet18").text
    assert 'hx-get="/ui/jobs?workload=resnet18&amp;part=true&amp;rows=8"' in again
    part = client.get("/ui/jobs?workload=resnet18&part=true&rows=8").text
    assert job["id"] in part
    assert "<html" not in part
    client.post(f"/jobs/{job['id']}/cancel")
    assert "every 2s" not in client.get("/ui/workloads/resnet18").text


def test_a_log_tells_what_is_new(client: TestClient, backend: Database) -> None:
    client.post("/ui/examples/iterative")
    job = str(client.get("/jobs").json()["items"][0]["id"])
    same = {"state": "running", "progress": 0.5, "algorithm": "double_dqn"}
    with backend.session() as session:
        for steps in (1_000, 250_000):
            fields = {**same, "steps": steps, "loss": 12_345.678}
            repository.add_event(session, "default", job, fields, utc_now())
    newest, before, _ = job_page(backend, "default", job).events
    assert before.words == "algorithm double dqn, steps 1,000, loss 12,346"
    assert newest.words == "steps 250,000"
