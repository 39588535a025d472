"""Workloads over HTTP: registering, listing, changing, deleting, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.database.engine import Database
from app.database.tables import Execution, Job
from tests.app.both import on_both
from tests.app.samples.bodies import csv_of, upload_csv


def pointers(answer: Any) -> list[str]:
    """Pointers of a 422 problem."""
    assert answer.headers["content-type"] == "application/problem+json"
    return [error["pointer"] for error in answer.json()["errors"]]


@on_both
def test_a_spec_is_registered_with_its_defaults(client: TestClient, spec: dict[str, Any]) -> None:
    del spec["metrics"], spec["weights"]
    answer = client.post("/workloads", json=spec)
    body = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, "/workloads/resnet18")
    assert [metric["name"] for metric in body["spec"]["metrics"]] == ["iteration_seconds"]
    assert (body["spec_version"], body["champion"], body["spec"]["weights"]["sla"]) == (1, None, 1.0)
    assert client.get("/workloads/resnet18").json() == body
    assert client.get(f"/workloads/{body['id']}").json() == body


@on_both
def test_the_same_spec_again_is_200_and_another_409(client: TestClient, workload: str, spec: dict[str, Any]) -> None:
    again = client.post("/workloads", json=spec)
    assert (again.status_code, again.json()["name"]) == (200, workload)
    other = client.post("/workloads", json={**spec, "iterations": 91})
    assert (other.status_code, pointers(other)) == (409, ["/iterations"])
    assert "iterations" in other.json()["detail"]


@on_both
def test_the_same_idempotency_key_is_answered_the_same(client: TestClient, spec: dict[str, Any]) -> None:
    headers = {"Idempotency-Key": "register-1"}
    first, second = (client.post("/workloads", json=spec, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert client.post("/workloads", json={**spec, "name": "x"}, headers=headers).status_code == 422


@on_both
def test_lists_page_through_by_cursor(client: TestClient, spec: dict[str, Any]) -> None:
    names = sorted(f"workload-{i}" for i in range(12))
    for name in reversed(names):
        assert client.post("/workloads", json={**spec, "name": name}).status_code == 201
    visited, link, pages = [], "/workloads?limit=5", 0
    while link:
        page = client.get(link).json()
        visited += [item["name"] for item in page["items"]]
        link, pages = page["next"], pages + 1
    assert (visited, pages) == (names, 3)
    assert len(client.get("/workloads").json()["items"]) == 12


@on_both
@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "limit=many", "cursor=%00", "cursor=abc", "cursor=WzFd", "cursor=WyJhIiwiYiJd"]
)
def test_a_strange_page_is_refused_by_name(client: TestClient, query: str) -> None:
    answer = client.get(f"/workloads?{query}")
    assert (answer.status_code, pointers(answer)) == (422, [f"/query/{query.partition('=')[0]}"])


@on_both
def test_targets_prices_and_weights_change_without_training(client: TestClient, workload: str) -> None:
    before = client.get(f"/workloads/{workload}").json()
    patch = {"targets": {"iteration_seconds": 1500}, "prices": {"gpus": 3.5}, "weights": {"cost": 0.5}}
    after = client.patch(f"/workloads/{workload}", json=patch).json()
    assert after["spec"]["metrics"][0]["target"] == 1500
    assert after["spec"]["resources"][0]["price_per_hour"] == 3.5
    assert after["spec"]["weights"] == {"sla": 1.0, "cost": 0.5, "change": 0.01}
    assert (after["spec_version"], after["revision"]) == (2, before["revision"] + 1)
    assert client.patch(f"/workloads/{workload}", json=patch).json() == after
    assert client.patch(f"/workloads/{workload}", json={}).json() == after
    cleared = client.patch(f"/workloads/{workload}", json={"targets": {"iteration_seconds": None}}).json()
    assert cleared["spec"]["metrics"][0]["target"] is None


@pytest.mark.parametrize(
    ("patch", "pointer"),
    [
        ({"targets": {"loss": 1}}, "/targets/loss"),
        ({"targets": {"iteration_seconds": -1}}, "/targets/iteration_seconds"),
        ({"probabilities": {"iteration_seconds": 0}}, "/probabilities/iteration_seconds"),
        ({"probabilities": {"loss": 0.5}}, "/probabilities/loss"),
        (
            {"targets": {"iteration_seconds": None}, "probabilities": {"iteration_seconds": 0.5}},
            "/probabilities/iteration_seconds",
        ),
        ({"prices": {"cpus": 1}}, "/prices/cpus"),
        ({"prices": {"gpus": -1}}, "/prices/gpus"),
        ({"weights": {"joy": 1}}, "/weights/joy"),
        ({"weights": {"cost": None}}, "/weights/cost"),
        ({"iterations": 5}, "/iterations"),
    ],
)
def test_what_a_patch_cannot_change_is_named(
    client: TestClient, workload: str, patch: dict[str, Any], pointer: str
) -> None:
    answer = client.patch(f"/workloads/{workload}", json=patch)
    assert (answer.status_code, pointers(answer)) == (422, [pointer])
    assert client.get(f"/workloads/{workload}").json()["spec_version"] == 1


@on_both
def test_deleting_takes_all_that_hangs_on_it_along(client: TestClient, workload: str, backend: Database) -> None:
    assert upload_csv(client, workload, csv_of({"a": 3})).status_code == 201
    assert client.post(f"/workloads/{workload}/models").status_code == 202
    assert client.delete(f"/workloads/{workload}?force=true").status_code == 204
    assert client.get(f"/workloads/{workload}").status_code == 404
    assert client.delete(f"/workloads/{workload}").status_code == 404
    with backend.reading() as session:
        assert (session.query(Execution).count(), session.query(Job).count()) == (0, 0)


def changed(spec: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A spec with one field set, by JSON pointer."""
    *parents, last = path.strip("/").split("/")
    here: Any = spec
    for part in parents:
        here = here[int(part)] if isinstance(here, list) else here[part]
    here[last] = value
    return spec


@pytest.mark.parametrize(
    ("path", "value", "pointer", "word"),
    [
        ("/kind", "quantum", "/kind", "iterative"),
        ("/name", "Größe", "/name", "pattern"),
        ("/name", "a/b", "/name", "pattern"),
        ("/name", "", "/name", "pattern"),
        ("/resources/0/name", "gpus\u0000", "/resources/0/name", "NUL"),
        ("/resources/0/name", "グラフィック", "/resources/0/name", "pattern"),
        ("/resources/0/minimum", 32, "/resources/0", "minimum"),
        ("/resources/0/step", 4, "/resources/0", "step"),
        ("/resources/0/step", 0, "/resources/0/step", "greater"),
        ("/resources/0/step", 1e-308, "/resources/0", "step"),
        ("/resources/0/maximum", 1e300, "/resources/0/maximum", "less than or equal to 1e+100"),
        ("/resources/0/maximum", 1e99, "", "allocation grid"),
        ("/resources/0/initial", 1e99, "/resources/0", "initial"),
        ("/resources/0/initial", 99, "/resources/0", "initial"),
        ("/resources/0/price_per_hour", -1, "/resources/0/price_per_hour", "greater"),
        ("/resources/0/change_seconds", -30, "/resources/0/change_seconds", "greater"),
        ("/resources", [], "/resources", "at least 1"),
        ("/metrics/0/goal", "exactly", "/metrics/0/goal", "at_most"),
        ("/metrics/0/target", -5, "/metrics/0/target", "greater"),
        ("/iterations", 0, "/iterations", "greater"),
        ("/iterations", 2.5, "/iterations", "integer"),
        ("/colour", "red", "/colour", "extra"),
    ],
)
def test_a_spec_that_cannot_be_is_refused_by_field(
    client: TestClient, spec: dict[str, Any], path: str, value: Any, pointer: str, word: str
) -> None:
    answer = client.post("/workloads", json=changed(spec, path, value))
    assert (answer.status_code, pointers(answer)[0]) == (422, pointer)
    assert word in answer.json()["errors"][0]["message"]
    assert client.get("/workloads").json()["items"] == []


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused_by_field(client: TestClient, spec: dict[str, Any], number: str) -> None:
    text = json.dumps(changed(spec, "/resources/0/maximum", "here")).replace('"here"', number)
    answer = client.post("/workloads", content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code, pointers(answer)[0]) == (422, "/resources/0/maximum")


def test_a_body_of_another_kind_is_refused(client: TestClient, spec: dict[str, Any]) -> None:
    answer = client.post("/workloads", content="name: x", headers={"Content-Type": "application/yaml"})
    assert answer.status_code == 415
    malformed = client.post("/workloads", content="{", headers={"Content-Type": "application/json"})
    assert malformed.status_code == 422
    assert "JSON" in malformed.json()["detail"]


def test_a_hundred_megabytes_are_413(client: TestClient) -> None:
    headers = {"Content-Type": "application/json"}
    answer = client.post("/workloads", content=b" " * (100 << 20), headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (413, "application/problem+json")


@pytest.mark.parametrize("name", ["nothing", "0" * 32])
def test_an_unknown_workload_is_404_wherever_it_is_named(client: TestClient, name: str) -> None:
    for suffix in ("", "/samples", "/models", "/models/1", "/agents", "/agents/1", "/agents/1/policy"):
        answer = client.get(f"/workloads/{name}{suffix}")
        assert (answer.status_code, answer.json()["status"]) == (404, 404)
        assert name in answer.json()["detail"]


def test_a_name_that_is_no_slug_is_refused(client: TestClient) -> None:
    answer = client.get("/workloads/Größe")
    assert (answer.status_code, pointers(answer)) == (422, ["/path/workload"])


def test_a_name_that_is_another_workloads_id_is_refused(
    client: TestClient, workload: str, spec: dict[str, Any]
) -> None:
    identifier = client.get(f"/workloads/{workload}").json()["id"]
    answer = client.post("/workloads", json={**spec, "name": identifier})
    assert (answer.status_code, pointers(answer)) == (409, ["/name"])
    assert client.get(f"/workloads/{identifier}").json()["name"] == workload
