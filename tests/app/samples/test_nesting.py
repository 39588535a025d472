"""Uploads and reports that are nested far too deeply: refused with their field, wherever they come in."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.kinds.contract.inputs import TOO_DEEP

NODE = {"name": "big", "processors": 8, "minimum": 1, "maximum": 1}
LEVELS = [150, 600, 100_000]
NDJSON, FLOW = "application/x-ndjson", "application/vnd.wfformat+json"
SAMPLE = '{"execution": "a", "reports": [{"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": %s}}]}'


def nested(levels: int) -> str:
    return "[" * levels + "]" * levels


def refused(answer: Any, pointer: str) -> None:
    assert answer.status_code == 422, answer.text[:300]
    [error] = answer.json()["errors"]
    assert error["pointer"].endswith(pointer)
    assert error["message"] == TOO_DEEP


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    ("media", "body", "pointer"),
    [
        ("application/json", f'{{"samples": [{SAMPLE}]}}', "/0/metrics/iteration_seconds"),
        ("application/json", '{"samples": {"a": %s}}', "/samples/a"),
        (NDJSON, f"\n{SAMPLE}\n", "/lines/2/reports/0/metrics/iteration_seconds"),
        (NDJSON, "%s", "/lines/1"),
    ],
)
def test_a_sample(client: TestClient, workload: str, media: str, body: str, pointer: str, levels: int) -> None:
    path, headers = f"/workloads/{workload}/samples", {"Content-Type": media}
    refused(client.post(path, content=body % nested(levels), headers=headers), pointer)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"schemaVersion": "1.5", "workflow": {"x": %s}}', "/workflow/x"),
        ('{"workflow": {"specification": {"tasks": [{"id": "a"}, {"id": "b", "about": %s}]}}}',
         "/workflow/specification/tasks/1"),
        ('{"name": %s}', "/name"),
    ],
)  # fmt: skip
def test_a_workflow(client: TestClient, body: str, pointer: str, levels: int) -> None:
    client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [NODE]})
    path, headers = "/workloads/cluster/samples", {"Content-Type": FLOW}
    refused(client.post(path, content=body % nested(levels), headers=headers), pointer)


@pytest.mark.parametrize("levels", LEVELS)
@pytest.mark.parametrize("kind", ["iterative", "workflow"])
def test_a_report(client: TestClient, workload: str, kind: str, levels: int) -> None:
    name, body, pointer = workload, '{"allocation": {"gpus": %s}}', "/allocation/gpus"
    if kind == "workflow":
        client.post("/workloads", json={"name": "cluster", "kind": "workflow", "nodes": [NODE]})
        name, body, pointer = "cluster", '{"now": 1, "queued": [{"id": "a", "parents": %s}]}', "/queued/0/parents"
    run = client.post("/runs", json={"workload": name}).json()["id"]
    headers = {"Content-Type": "application/json"}
    refused(client.put(f"/runs/{run}/iterations/0", content=body % nested(levels), headers=headers), pointer)
