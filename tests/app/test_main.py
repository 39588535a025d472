from __future__ import annotations

import asyncio
import gc
import logging
import subprocess
import sys
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app import queue
from app.database import leases
from app.database.engine import Database
from app.http import health


def test_an_application_leaves_the_collection_of_garbage_to_its_process(app: FastAPI) -> None:
    threshold, frozen = gc.get_threshold(), gc.get_freeze_count()
    with TestClient(app):
        pass
    assert gc.get_threshold() == threshold
    assert abs(gc.get_freeze_count() - frozen) < 1000  # some of them may have ended


def test_liveness(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}


def test_readiness_asks_for_database_broker_and_a_worker(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KNOWN_SECONDS", 0.0)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert (answer.json()["database"], answer.json()["broker"]) == ("ok", "ok")
    assert "none seen" in answer.json()["worker"]
    with database.session() as session:
        leases.beat(session, "host/1/2")
    assert client.get("/readyz").json() == {"ready": True, "database": "ok", "broker": "ok", "worker": "ok"}
    with database.session() as session:
        leases.leave(session, "host/1/2")
    assert client.get("/readyz").status_code == 503


def test_however_many_ask_whether_it_is_ready_the_broker_is_asked_once(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "KNOWN_SECONDS", 600.0)
    requests, let_go = [], threading.Event()

    def away() -> str:
        requests.append(threading.get_ident())
        let_go.wait(60)
        return "OperationalError: no answer from redis.internal:6379"

    monkeypatch.setattr(queue, "broker_problem", away)

    async def many() -> list[Any]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as caller:
            waiting = [asyncio.create_task(caller.get("/readyz")) for _ in range(100)]
            waiting[0].cancel()  # who asked first gives up
            assert (await caller.get("/workloads", timeout=60)).status_code == 200  # no threads are held up
            let_go.set()
            answers = await asyncio.gather(*waiting[1:])
            return [*answers, *[await caller.get("/readyz") for _ in range(10)]]

    answers = asyncio.run(many())
    assert {answer.json()["broker"] for answer in answers} == {"does not answer: OperationalError"}
    assert len(requests) == 1


def test_metrics_are_prometheus_text(client: TestClient, database: Database) -> None:
    with database.session() as session:
        leases.beat(session, "host/1/2")
    with client:
        logging.getLogger("app").error("what the metrics count")
        client.get("/healthz")
        text = client.get("/metrics").text
    logging.getLogger("app").error("what they don't count any more")
    assert 'steward_log_records_total{level="error"} 1.0' in text
    for result in ("steward_workers 1.0", "steward_database_up 1.0", "steward_job_waiting_seconds 0.0"):
        assert result in text
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
    assert "is not valid JSON" in answer.json()["detail"]


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


def test_the_api_imports_nothing_that_learns_or_exports_spans() -> None:
    program = (
        "import sys, app.main; heavy = ('torch', 'sklearn', 'scipy', 'workers', 'pandas', 'opentelemetry.sdk'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "[]"


def test_the_first_decision_of_a_process_imports_nothing_more() -> None:
    program = (
        "import sys, app.main, numpy as np; from app.policies.functions import mask_actions; known = set(sys.modules); "
        "mask_actions(np.zeros((1, 2)), np.ones((1, 2), bool)); print(set(sys.modules) - known)"
    )
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "set()"
