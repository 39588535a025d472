"""Runs of kind ``inference`` over HTTP, on both databases: events are reported, starts are answered, nothing twice."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.inference.example import EXAMPLE, SPEC
from app.main import create_app
from app.settings import Settings
from tests.app.both import on_both
from tests.app.kinds.inference.published import publish

PER_USER = {**SPEC, "name": "fair", "policies": "per_user"}


@pytest.fixture
def vision(client: TestClient) -> str:
    assert client.post("/workloads", json=SPEC).status_code == 201
    return str(SPEC["name"])


def begin(client: TestClient, workload: str, **body: Any) -> str:
    answer = client.post("/runs", json={"workload": workload, **body})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def put_report(client: TestClient, run: str, number: int, status: int = 201) -> dict[str, Any]:
    """The decision for the example's report."""
    answer = client.put(f"/runs/{run}/iterations/{number}", json=EXAMPLE.reports[number])
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


@on_both
def test_reports_are_answered_once_and_read_again_by_another_process(
    client: TestClient, vision: str, settings: Settings, backend: Database
) -> None:
    run = begin(client, vision)
    first = put_report(client, run, 0)
    assert [start["requests"] for start in first["start"]]
    assert put_report(client, run, 0, status=200) == first
    other = TestClient(create_app(settings, backend))
    second = put_report(other, run, 1)
    assert put_report(client, run, 1, status=200) == second
    assert client.put(f"/runs/{run}/iterations/1", json={"at": 0.3}).status_code == 409
    answer = client.put(f"/runs/{run}/iterations/2", json={"at": 0.4, "arrived": [{"user": "nobody", "at": 0.35}]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/arrived/0/user")
    put_report(client, run, 2)
    assert client.patch(f"/runs/{run}", json={"state": "finished"}).status_code == 200
    (sample,) = client.get(f"/workloads/{vision}/samples").json()["items"]
    assert (sample["execution"], sample["requests"]["count"]) == (run, 4)


@on_both
def test_logs_and_batches_are_uploaded_told_and_handed_out_again(client: TestClient, vision: str) -> None:
    path, lines = f"/workloads/{vision}/samples", EXAMPLE.samples["application/x-ndjson"]
    headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
    answer = client.post(f"{path}?execution=monday", content=gzip.compress(lines), headers=headers)
    assert (answer.status_code, answer.json()["accepted"]) == (201, 1), answer.text
    answer = client.post(f"{path}?execution=monday", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert answer.json()["duplicate"] == 1
    (selection,) = client.get(path).json()["items"]
    assert (selection["requests"]["count"], selection["batches"]["count"]) == (120, 32)
    out = client.get(f"{path}?execution=monday", headers={"Accept": "application/x-ndjson"})
    assert len(out.text.splitlines()) == len(lines.splitlines())
    broken = b"time,user\n1.0,shop\n0.5,shop\n"
    answer = client.post(f"{path}?execution=tuesday", content=broken, headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/lines/3/time")
    assert len(client.get(path).json()["items"]) == 1


@on_both
def test_a_shadow_is_asked_beside_and_told(client: TestClient, vision: str, backend: Database) -> None:
    publish(backend, SPEC)
    shadowed, plain = begin(client, vision, shadow=1), begin(client, vision)
    beside, alone = put_report(client, shadowed, 0), put_report(client, plain, 0)
    assert (beside["start"], beside["source"], alone["shadow"]) == (alone["start"], "heuristic", None)
    assert (beside["shadow"]["agent"], beside["shadow"]["problem"]) == (1, None)
    assert client.get(f"/runs/{shadowed}/iterations").json()["items"][0]["decision"]["shadow"] == beside["shadow"]
    body = client.get(f"/workloads/{vision}/agents/1/shadow").json()
    assert (body["runs"], body["decisions"], body["failures"]) == (1, 1, 0)


@on_both
def test_each_role_has_a_champion_and_an_artifact_of_its_own(client: TestClient, backend: Database) -> None:
    assert client.post("/workloads", json=PER_USER).status_code == 201
    parts = publish(backend, PER_USER)
    path = "/workloads/fair/agents/1"
    for role, data in parts.items():
        assert client.get(f"{path}/policy?role={role}").content == data
        assert client.post(f"{path}/promote", json={"role": role}).status_code == 200
    assert client.get("/workloads/fair").json()["champions"] == dict.fromkeys(parts, 1)
    decision = put_report(client, begin(client, "fair"), 0)
    assert (decision["source"], decision["agent"]) == ("agent", 1)
    assert client.get(f"{path}/policy?role=nobody").json()["errors"][0]["pointer"] == "/role"
