"""The audit: who did what, in the transaction that did it; exported without formulas; by tenant."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select

from app.audit import service
from app.database.engine import Database
from app.database.tables import AuditEntry
from app.main import create_app
from app.settings import Settings
from tests.app.domain_models.published import publish_agent, publish_model
from tests.app.keys.conftest import Headers, make_key
from tests.app.samples.bodies import csv_of, upload_csv
from tests.batched import SPEC

HOME = f"/workloads/{SPEC['name']}"


@pytest.fixture
def client(settings: Settings, any_database: Database, admin: Headers) -> Iterator[TestClient]:
    with TestClient(create_app(settings, any_database)) as client:
        yield client


@pytest.fixture
def admin(any_database: Database) -> Headers:
    return make_key(any_database, "default", ["admin"])


def entries(client: TestClient, headers: Headers, **query: Any) -> list[dict[str, Any]]:
    answer = client.get("/audit", params=query, headers=headers)
    assert answer.status_code == 200
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def test_every_change_says_who_made_it(client: TestClient, any_database: Database, admin: Headers) -> None:
    assert client.post("/workloads", json=SPEC, headers=admin).is_success
    client.post("/workloads", json=SPEC, headers=admin)  # which changes nothing
    client.patch(HOME, json={"weights": {"sla": 3.0}}, headers=admin)
    publish_model(any_database, SPEC["name"])
    publish_agent(any_database, SPEC["name"], promote=True)
    client.post(f"{HOME}/agents/1/rollback", json={}, headers=admin)
    client.put(f"{HOME}/drift", json={"respond": "off"}, headers=admin)
    client.delete(HOME, headers=admin)
    client.delete(HOME, headers=admin)  # which finds nothing
    result = entries(client, admin)
    key = f"key:{admin['Authorization'].split('_')[1]}"
    assert [(entry["action"], entry["actor"]) for entry in result] == [
        ("workload.delete", key),
        ("drift.respond", key),
        ("agent.promote", key),
        ("agent.promote", "steward"),
        ("workload.change", key),
        ("workload.create", key),
        ("key.create", "steward"),
    ]
    assert result[0]["target"] == f"workload {SPEC['name']}"
    assert result[0]["address"] == "testclient"
    assert result[2]["detail"]["version"] is None
    assert [entry["action"] for entry in entries(client, admin, action="workload")] == [
        "workload.delete",
        "workload.change",
        "workload.create",
    ]
    assert len(entries(client, admin, action="workload.change")) == 1
    assert entries(client, admin, action="work") == []


def test_started_jobs_and_ended_runs_are_recorded_once(
    client: TestClient, any_database: Database, admin: Headers
) -> None:
    client.post("/workloads", json=SPEC, headers=admin)
    upload_csv(client, SPEC["name"], csv_of({"a": 3}), **admin)
    ended = list[str]()
    for state in ("finished", "cancelled"):
        run = client.post("/runs", json={"workload": SPEC["name"]}, headers=admin).json()["id"]
        for _ in range(2):  # the second changes nothing
            assert client.patch(f"/runs/{run}", json={"state": state}, headers=admin).is_success
        ended.append(run)
    jobs = [client.post(f"{HOME}/models", headers=admin).json()["id"] for _ in range(2)]
    refused = client.post(f"{HOME}/agents", json={"algorithm": "none such"}, headers=admin)
    assert refused.status_code == 422
    results = [(one["action"], one["target"], one["detail"]) for one in entries(client, admin)]
    assert [one for one in results if one[0] == "job.create"] == [
        ("job.create", f"job {one}", {"type": "fit"}) for one in reversed(jobs)
    ]
    assert [one for one in results if one[0] == "run.end"] == [
        ("run.end", f"run {ended[1]}", {"state": "cancelled"}),
        ("run.end", f"run {ended[0]}", {"state": "finished"}),
    ]


def test_what_came_to_nothing_is_not_told_of(any_database: Database) -> None:
    class Undone(Exception):
        pass

    def fails() -> None:
        with any_database.session() as session:
            service.add(session, "default", "workload.delete", "workload x")
            raise Undone

    with pytest.raises(Undone):
        fails()
    with any_database.reading() as session:
        assert session.scalars(select(AuditEntry)).all() == []


def test_exports_hold_everything_and_no_formulas(client: TestClient, any_database: Database, admin: Headers) -> None:
    dangerous = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", 'a,"b"', "plain"]
    with any_database.session() as session:
        for target in dangerous:
            service.add(session, "default", "test.it", target)
        for _ in range(600):  # more than a page
            service.add(session, "default", "test.many", "x")
        service.add(session, "others", "test.it", "of another tenant")
    answer = client.get("/audit?action=test", headers={**admin, "accept": "text/csv"})
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert len(rows) == 608
    cells = {row["target"] for row in rows if row["action"] == "test.it"}
    assert cells == {f"'{text}" if text[0] in "=+-@\t\r" else text for text in dangerous}
    lines = client.get("/audit?action=test.it", headers={**admin, "accept": "application/x-ndjson"}).text.splitlines()
    assert {json.loads(line)["target"] for line in lines} == set(dangerous)
