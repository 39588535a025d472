"""Domain models over HTTP: asking for a fit, reading versions, predicting."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from tests.app.both import on_both
from tests.app.domain_models.published import publish_model
from tests.app.samples.bodies import csv_of, upload_csv


@on_both
def test_a_fit_is_a_job(client: TestClient, workload: str) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    answer = client.post(f"/workloads/{workload}/models", json={"seed": 7})
    job = answer.json()
    assert (answer.status_code, job["type"], job["state"], job["workload"]) == (202, "fit", "queued", workload)
    assert client.get(f"/jobs/{job['id']}").json()["state"] == "queued"
    assert client.post(f"/workloads/{workload}/models").status_code == 202


def test_the_same_key_queues_one_fit(client: TestClient, workload: str) -> None:
    upload_csv(client, workload, csv_of({"a": 3}))
    headers = {"Idempotency-Key": "fit-1"}
    first, second = (client.post(f"/workloads/{workload}/models", headers=headers).json() for _ in range(2))
    assert first == second
    assert len(client.get("/jobs").json()["items"]) == 1


def test_a_fit_before_any_sample_says_what_to_do(client: TestClient, workload: str) -> None:
    answer = client.post(f"/workloads/{workload}/models")
    assert (answer.status_code, answer.headers["content-type"]) == (409, "application/problem+json")
    assert f"POST /workloads/{workload}/samples" in answer.json()["detail"]
    assert answer.json()["errors"] == [
        {"pointer": "/samples", "message": "must hold at least one execution", "value": 0}
    ]
    assert client.get("/jobs").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "pointer"), [({"seed": -1}, "/seed"), ({"seed": "x"}, "/seed"), ({"speed": 1}, "/speed"), ([], "")]
)
def test_a_strange_request_is_refused_by_field(client: TestClient, workload: str, body: Any, pointer: str) -> None:
    answer = client.post(f"/workloads/{workload}/models", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)


@on_both
def test_versions_are_listed_newest_first(client: TestClient, workload: str, backend: Database) -> None:
    revision = client.get(f"/workloads/{workload}").json()["revision"]
    assert [publish_model(backend, workload, {"family": "ernest"}) for _ in range(3)] == [1, 2, 3]
    body = client.get(f"/workloads/{workload}/models?limit=2").json()
    assert [item["version"] for item in body["items"]] == [3, 2]
    assert [item["version"] for item in client.get(body["next"]).json()["items"]] == [1]
    one = client.get(f"/workloads/{workload}/models/2").json()
    assert (one["workload"], one["report"]) == (workload, {"family": "ernest", "version": 2})
    assert client.get(f"/workloads/{workload}").json()["revision"] == revision + 3


def test_a_version_that_is_not_there_is_404(client: TestClient, workload: str, backend: Database) -> None:
    first = client.get(f"/workloads/{workload}/models/1")
    assert (first.status_code, "fit one" in first.json()["detail"]) == (404, True)
    publish_model(backend, workload)
    other = client.get(f"/workloads/{workload}/models/2")
    assert (other.status_code, "newest is 1" in other.json()["detail"]) == (404, True)
    assert client.get(f"/workloads/{workload}/models/0").status_code == 422
    assert client.get(f"/workloads/{workload}/models/latest").status_code == 422


def test_a_prediction_has_an_interval(client: TestClient, workload: str, backend: Database) -> None:
    publish_model(backend, workload)
    path = f"/workloads/{workload}/models/1/predict"
    body = client.get(f"{path}?allocation=gpus:3&feature=batch:128&iteration=5").json()
    interval = body["predicted"]["iteration_seconds"]
    expected = {"mean": 8.0, "low": 4.0, "high": 16.0, "level": 0.9}
    assert interval == pytest.approx(expected, rel=1e-5)
    assert (body["allocation"], body["iteration"], body["seen"]) == ({"gpus": 3}, 5, True)
    beyond = client.get(f"{path}?allocation=gpus:9&feature=batch:128").json()
    assert (beyond["seen"], beyond["iteration"]) == (False, 0)


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("allocation=gpus:17&feature=batch:128", "/query/allocation/gpus"),
        ("allocation=gpus:2.5&feature=batch:128", "/query/allocation/gpus"),
        ("allocation=gpus:nan&feature=batch:128", "/query/allocation/gpus"),
        ("allocation=tpus:4&allocation=gpus:4&feature=batch:128", "/query/allocation/tpus"),
        ("allocation=gpus:4", "/query/feature/batch"),
        ("allocation=gpus:4&feature=batch:inf", "/query/feature/batch"),
        ("allocation=gpus:4&feature=batch:1000", "/query/feature/batch"),
        ("allocation=gpus:4&feature=batch:128&iteration=90", "/query/iteration"),
        ("allocation=gpus:4&feature=batch:128&iteration=-1", "/query/iteration"),
        ("allocation=gpus:four&feature=batch:128", "/query/allocation"),
        ("allocation=gpus&feature=batch:128", "/query/allocation"),
        ("allocation=gpus:4&allocation=gpus:5&feature=batch:128", "/query/allocation/gpus"),
        ("feature=batch:128", "/query/allocation/gpus"),
    ],
)
def test_a_question_beyond_the_workload_is_refused_by_field(
    client: TestClient, workload: str, backend: Database, query: str, pointer: str
) -> None:
    publish_model(backend, workload)
    answer = client.get(f"/workloads/{workload}/models/1/predict?{query}")
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
