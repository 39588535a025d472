"""A report that names a member twice says two things: it is refused in every kind, and nothing of it is kept."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.kinds.contract.inputs import TWICE
from app.kinds.registry import KINDS
from tests.batched import SPEC

METRICS = b'"metrics": {"iteration_seconds": 31.5}'
JOB = rb'{"job": "a\":b\":", "gpus": 1%b}'
TWICE_NAMED = [
    ("iterative", b'{"allocation": {"gpus": 4, "gpus": 5}, %b}' % METRICS, "/allocation/gpus"),
    ("iterative", b'{"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 1, "iteration_seconds": 2}}', None),
    ("iterative", b'{"allocation": {"gpus": 4}, "allocation": {"gpus": 5}, %b}' % METRICS, "/allocation"),
    ("iterative", b'{"allocation": {"gpus": 4}, %b, "features": {}, "features": {"batch": 8}}' % METRICS, "/features"),
    ("iterative", rb'{"allocation": {"gpus": 4, "\u0067pus": 5}, %b}' % METRICS, "/allocation/gpus"),
    ("cluster", b'{"at": 0, "at": 1}', "/at"),
    ("cluster", b'{"at": 0, "submitted": [%b]}' % (JOB % b', "gpus": 2'), "/submitted/0/gpus"),
    ("inference", b'{"at": 0, "arrived": [], "arrived": []}', "/arrived"),
    ("inference", b'{"at": 0, "at": 1}', "/at"),
    ("workflow", b'{"now": 0, "now": 1}', "/now"),
    ("workflow", b'{"now": 0, "queued": [], "queued": []}', "/queued"),
]


@pytest.mark.parametrize(("kind", "body", "pointer"), TWICE_NAMED)
def test_a_member_that_is_named_twice_is_refused(
    client: TestClient, kind: str, body: bytes, pointer: str | None
) -> None:
    spec = SPEC if kind == "iterative" else dict(KINDS[kind].example.spec)
    for name in (spec["name"], "other"):
        assert client.post("/workloads", json=spec | {"name": name}).status_code == 201
    run = client.post("/runs", json={"workload": spec["name"]}).json()["id"]
    answer = client.put(f"/runs/{run}/iterations/0", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 422, answer.text
    [error] = answer.json()["errors"]
    assert (error["pointer"], error["message"]) == (pointer or "/metrics/iteration_seconds", TWICE)
    assert client.get(f"/runs/{run}/iterations").json()["items"] == []
