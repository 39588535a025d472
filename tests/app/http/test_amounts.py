"""What is wrong a thousand times over is told a hundred times; more than can be looked at is refused unread."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.http.limits import MOST_VALUES
from app.kinds.contract.inputs import LONGEST_WALKED, MOST_ERRORS
from app.kinds.registry import KINDS
from tests.batched import SPEC

LONGEST_ANSWER = 100_000
MANY = 20_000
JSON = {"content-type": "application/json"}


@pytest.fixture
def run(client: TestClient) -> str:
    """A run of the first of two workloads."""
    for name in (SPEC["name"], "other"):
        assert client.post("/workloads", json=SPEC | {"name": name}).status_code == 201
    return str(client.post("/runs", json={"workload": SPEC["name"]}).json()["id"])


def refused(client: TestClient, method: str, path: str, body: Any, status: int = 422) -> dict[str, Any]:
    """The problem that a body is answered with, which is short."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    answer = client.request(method, path, content=content, headers=JSON)
    assert answer.status_code == status, answer.text[:500]
    assert len(answer.content) < LONGEST_ANSWER
    problem: dict[str, Any] = answer.json()
    return problem


def test_of_many_errors_the_first_are_told_and_the_rest_is_counted(client: TestClient) -> None:
    problem = refused(client, "POST", "/workloads", SPEC | {f"x{number}": 1 for number in range(MANY)})
    assert [error["pointer"] for error in problem["errors"]] == [f"/x{number}" for number in range(MOST_ERRORS)]
    assert problem["detail"].endswith(f"; and {MANY - MOST_ERRORS:,} more")


@pytest.mark.parametrize("path", ["/workloads", "/runs"])
def test_more_values_than_can_be_looked_at_are_refused(client: TestClient, path: str) -> None:
    problem = refused(client, "POST", path, b'{"resources": [' + b"{}," * MOST_VALUES + b"{}]}", 413)
    assert f"more than {MOST_VALUES:,} values" in problem["detail"]


def test_a_list_that_is_too_long_is_one_error(client: TestClient) -> None:
    problem = refused(client, "POST", "/workloads", SPEC | {"resources": [{}] * MANY, "metrics": [{}] * 2})
    entries = [error["pointer"] for error in problem["errors"]]
    assert entries.count("/resources") == 1
    assert not any(pointer.startswith("/resources/") for pointer in entries)
    assert {pointer.rpartition("/")[0] for pointer in entries} >= {"/metrics/0", "/metrics/1"}  # which few enough have


@pytest.mark.parametrize("value", [1, "a"])
@pytest.mark.parametrize("part", ["metrics", "allocation", "features"])
def test_a_report_of_many_unknown_names_is_one_error(client: TestClient, run: str, part: str, value: object) -> None:
    report = {"allocation": {"gpus": 4}, "metrics": {}, part: {f"x{number}": value for number in range(MANY)}}
    problem = refused(client, "PUT", f"/runs/{run}/iterations/0", report)
    assert [error["pointer"] for error in problem["errors"]] == [f"/{part}"]


def test_a_report_of_some_unknown_names_names_each(client: TestClient, run: str) -> None:
    report = {"allocation": {"gpus": 4}, "metrics": {"x": 1, "y": "a" * 10_000}, "z": {"a" * 10_000: 1}}
    problem = refused(client, "PUT", f"/runs/{run}/iterations/0", report)
    assert [error["pointer"] for error in problem["errors"]] == ["/metrics/y", "/z"]
    report = {"allocation": {"gpus": 4}, "metrics": {"x": 1, "y" * 10_000: 2}}
    problem = refused(client, "PUT", f"/runs/{run}/iterations/0", report)
    assert [error["pointer"][:12] for error in problem["errors"][:2]] == ["/metrics/x", "/metrics/yyy"]
    assert max(len(error["pointer"]) for error in problem["errors"]) < 2_000


@pytest.mark.parametrize("kind", ["cluster", "inference", "workflow"])
def test_reports_of_events_that_are_wrong_name_the_first(client: TestClient, kind: str) -> None:
    spec = dict(KINDS[kind].example.spec)
    assert client.post("/workloads", json=spec).status_code == 201
    run = client.post("/runs", json={"workload": spec["name"]}).json()["id"]
    part = {"cluster": "submitted", "inference": "arrived", "workflow": "queued"}[kind]
    moment = "now" if kind == "workflow" else "at"
    problem = refused(client, "PUT", f"/runs/{run}/iterations/0", {moment: 0.0, part: [{}] * MANY})
    assert [error["pointer"].split("/")[1] for error in problem["errors"]] == [part]


def test_rejected_executions_are_told_in_part(client: TestClient, run: str) -> None:
    assert run
    body = {"samples": [{"execution": f"e{number}", "reports": []} for number in range(2 * MOST_ERRORS)]}
    problem = refused(client, "POST", f"/workloads/{SPEC['name']}/samples", body)
    assert len(problem["errors"]) == MOST_ERRORS
    assert f"none of the {2 * MOST_ERRORS} executions" in problem["detail"]


def test_places_in_a_long_body_are_not_searched(client: TestClient, run: str) -> None:
    long = b'{"a": [' + b"[]," * (LONGEST_WALKED // 3 + 1)
    problem = refused(client, "PUT", f"/runs/{run}/iterations/0", long + b"[" * 65 + b"]" * 66 + b"}")
    assert problem["errors"][0]["message"].startswith("must be nested at most")
    shallow = refused(client, "PUT", f"/runs/{run}/iterations/0", long + b"[" * 60 + b"]" * 61 + b"}")
    assert "must have at most 1,048,576 bytes" in shallow["detail"]  # by its length: nothing in it is looked for
