"""Workloads that are members of others: they are there, stay, and their changes are heard of."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.kinds.workflow.example import SPEC as WORKFLOW
from app.workloads.snapshot import WorkloadCache
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model

LAB = {"name": "lab", "kind": "cluster", "nodes": [{"name": "n", "count": 2, "gpus": 4}]}


@on_both
def test_members_must_be_there_and_take_whole_gpus(client: TestClient, workload: str) -> None:
    assert client.post("/workloads", json=WORKFLOW).status_code == 201
    wanted = [workload, "nobody", WORKFLOW["name"]]
    refused = client.post("/workloads", json={**LAB, "members": wanted})
    assert refused.status_code == 422
    errors = refused.json()["errors"]
    assert [(error["pointer"], error["value"]) for error in errors] == [
        ("/members/1", "nobody"),
        ("/members/2", WORKFLOW["name"]),
    ]
    assert "is registered" in errors[0]["message"]
    assert "of kind workflow" in errors[1]["message"]
    assert client.get("/workloads/lab").status_code == 404
    identifier = client.get(f"/workloads/{workload}").json()["id"]
    assert client.post("/workloads", json={**LAB, "members": [identifier]}).status_code == 422
    assert client.post("/workloads", json={**LAB, "members": [workload]}).status_code == 201


@on_both
def test_a_member_stays_as_long_as_it_is_one(client: TestClient, workload: str) -> None:
    assert client.post("/workloads", json={**LAB, "members": [workload]}).status_code == 201
    refused = client.delete(f"/workloads/{workload}")
    assert refused.status_code == 409
    assert "member of lab" in refused.json()["detail"]
    assert client.patch("/workloads/lab", json={"members": ["nobody"]}).status_code == 422
    twice = client.patch("/workloads/lab", json={"members": [workload, workload]})
    assert (twice.status_code, twice.json()["errors"][0]["pointer"]) == (422, "/members")
    assert client.patch("/workloads/lab", json={"members": []}).json()["spec_version"] == 2
    assert client.delete(f"/workloads/{workload}").status_code == 204
    assert client.patch("/workloads/lab", json={"members": [workload]}).status_code == 422


def test_members_of_another_tenant_are_nobodys(database: Database, spec: dict[str, Any]) -> None:
    from app.errors import Invalid
    from app.kinds.registry import parse_spec
    from app.workloads import service

    service.register(database, "theirs", parse_spec(spec))
    with pytest.raises(Invalid, match="/members/0"):
        service.register(database, "ours", parse_spec({**LAB, "members": [spec["name"]]}))


@on_both
def test_a_member_that_changes_is_seen_at_once(
    client: TestClient, backend: Database, workload: str, spec: dict[str, Any]
) -> None:
    assert client.post("/workloads", json={**LAB, "members": [workload]}).status_code == 201
    cache = WorkloadCache(backend, 0.0)
    before = cache.get("lab")
    assert not before.members[workload].seconds_known
    assert before.members[workload].run_seconds == spec["metrics"][0]["target"]
    publish_model(backend, workload)
    fitted = cache.get("lab")
    assert fitted.members[workload].seconds_known
    assert fitted.members[workload].seconds[:3].tolist() == pytest.approx([2, 4, 8])
    assert client.patch(f"/workloads/{workload}", json={"targets": {"iteration_seconds": 900}}).status_code == 200
    assert cache.get("lab").members[workload].run_seconds == 900
    assert cache.get("lab").revision == before.revision + 2
