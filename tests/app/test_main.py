from __future__ import annotations

import subprocess
import sys

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.database import seen
from app.database.engine import Database


def test_liveness(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readiness_asks_for_database_broker_and_a_worker(client: TestClient, database: Database) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert (answer.json()["database"], answer.json()["broker"]) == ("ok", "ok")
    assert "none seen" in answer.json()["worker"]
    with database.session() as session:
        seen.beat(session, "host/1/2")
    assert client.get("/readyz").json() == {"ready": True, "database": "ok", "broker": "ok", "worker": "ok"}
    with database.session() as session:
        seen.leave(session, "host/1/2")
    assert client.get("/readyz").status_code == 503


def test_metrics_are_prometheus_text(client: TestClient) -> None:
    client.get("/healthz")
    text = client.get("/metrics").text
    assert 'steward_requests_total{method="GET",route="/healthz",status="200"} 1.0' in text
    assert "process_resident_memory_bytes" in text


@pytest.mark.parametrize(
    ("method", "path", "status", "uri"),
    [("GET", "/nowhere", 404, "/problems/not-found"), ("DELETE", "/jobs", 405, "/problems/http-405")],
)
def test_what_the_framework_refuses_is_a_problem_too(
    client: TestClient, method: str, path: str, status: int, uri: str
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert (answer.json()["type"], answer.json()["instance"]) == (uri, path)


def test_a_json_body_under_another_content_type_is_415(client: TestClient) -> None:
    answer = client.post("/workloads", content=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415
    assert answer.json()["errors"][0]["pointer"] == "/header/Content-Type"


def test_a_body_that_is_no_json_says_so(client: TestClient) -> None:
    answer = client.post("/workloads", content=b"{", headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert "not JSON" in answer.json()["detail"]


def test_every_operation_documents_its_errors(app: FastAPI) -> None:
    schema = app.openapi()
    assert schema["openapi"].startswith("3.1")
    assert "Problem" in schema["components"]["schemas"]
    undocumented = [
        (method, path)
        for path, operations in schema["paths"].items()
        for method, operation in operations.items()
        if "503" not in operation["responses"]
    ]
    assert undocumented == []


def test_every_reference_of_the_schema_leads_somewhere(app: FastAPI) -> None:
    schema = app.openapi()
    known = {f"#/components/schemas/{name}" for name in schema["components"]["schemas"]}
    assert references(schema) - known == set()


def references(node: object) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(child) for child in node.values()))
    return set().union(*(references(child) for child in node)) if isinstance(node, list) else set()


def test_the_api_imports_nothing_that_learns() -> None:
    program = (
        "import sys, app.main; "
        "print([name for name in ('torch', 'sklearn', 'scipy', 'workers', 'pandas') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_first_decision_of_a_process_imports_nothing_more() -> None:
    program = (
        "import sys, app.main, numpy as np; from app.policies.functions import masked; known = set(sys.modules); "
        "masked(np.zeros((1, 2)), np.ones((1, 2), bool)); print(set(sys.modules) - known)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
