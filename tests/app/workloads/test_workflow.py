"""Workloads of kind ``workflow`` over HTTP: the same verbs, another spec."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.kinds.workflow.example import SPEC as CLUSTER_EXAMPLE
from tests.app.workloads.test_endpoints import pointers

LARGE: dict[str, Any] = CLUSTER_EXAMPLE["nodes"][0]


def test_a_cluster_is_registered_read_and_deleted(client: TestClient) -> None:
    response = client.post("/workloads", json=CLUSTER_EXAMPLE)
    assert (response.status_code, response.json()["kind"]) == (201, "workflow")
    assert client.post("/workloads", json=CLUSTER_EXAMPLE).status_code == 200
    assert client.get("/workloads/queue").json()["spec"]["nodes"][0]["speed"] == 1.0
    other = client.post("/workloads", json={**CLUSTER_EXAMPLE, "backfilling": "none"})
    assert (other.status_code, pointers(other)) == (409, ["/backfilling"])
    assert client.delete("/workloads/queue").status_code == 204


def test_a_name_is_of_one_kind(client: TestClient, workload: str) -> None:
    answer = client.post("/workloads", json={**CLUSTER_EXAMPLE, "name": workload})
    assert answer.status_code == 409
    assert "/kind" in pointers(answer)


@pytest.mark.parametrize(
    ("part", "pointer"),
    [
        ({"kind": "mainframe"}, "/kind"),
        ({"kind": 3}, "/kind"),
        ({"nodes": []}, "/nodes"),
        ({"nodes": [{**LARGE, "processors": 0}]}, "/nodes/0/processors"),
        ({"nodes": [{**LARGE, "minimum": 9}]}, "/nodes/0"),
        ({"nodes": [LARGE, LARGE]}, "/nodes"),
        ({"nodes": [{**LARGE, "billing_seconds": 0}]}, "/nodes/0/billing_seconds"),
        ({"backfilling": "some"}, "/backfilling"),
        ({"resources": []}, "/resources"),
    ],
)
def test_a_cluster_that_cannot_be_is_refused_by_field(client: TestClient, part: dict[str, Any], pointer: str) -> None:
    answer = client.post("/workloads", json={**CLUSTER_EXAMPLE, **part})
    assert (answer.status_code, pointers(answer)[0]) == (422, pointer)


def test_prices_and_weights_change_and_what_there_is_not_is_named(client: TestClient) -> None:
    client.post("/workloads", json=CLUSTER_EXAMPLE)
    after = client.patch("/workloads/queue", json={"prices": {"large": 2}, "weights": {"makespan": 1}}).json()
    assert (after["spec"]["nodes"][0]["price_per_hour"], after["spec"]["weights"]["makespan"]) == (2, 1)
    assert after["spec_version"] == 2
    patch = {"prices": {"small": 1}, "weights": {"sla": 1}}
    answer = client.patch("/workloads/queue", json=patch)
    assert (answer.status_code, set(pointers(answer))) == (422, {"/prices/small", "/weights/sla"})
    answer = client.patch("/workloads/queue", json={"targets": {"iteration_seconds": 1}})
    assert (answer.status_code, pointers(answer)) == (422, ["/targets"])
