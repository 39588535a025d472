"""NUL and halves of surrogate pairs, wherever a caller can put them: refused by name, on either database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from app.http.query import MESSAGE
from tests.app.both import on_both

METHODS = ("get", "post", "put", "patch", "delete")
JSON = {"content-type": "application/json"}
STREAMED = "/workloads/{workload}/samples"
REPORT = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}


def operations(client: TestClient) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Method, path and operation of all that the schema has."""
    for path, methods in client.get("/openapi.json").json()["paths"].items():
        for method in METHODS:
            if method in methods:
                yield method, path, methods[method]


def names(operation: dict[str, Any], place: str) -> list[str]:
    return [parameter["name"] for parameter in operation.get("parameters", ()) if parameter["in"] == place]


def filled(path: str, operation: dict[str, Any], odd: str = "", workload: str = "resnet18") -> str:
    """The path with a value for each of its parameters; ``odd`` gets a NUL."""
    for name in names(operation, "path"):
        value = "a\0b" if name == odd else "1" if name in ("version", "iteration") else workload
        path = path.replace(f"{{{name}}}", quote(value))
    return path


def refusal(answer: Any) -> list[str]:
    """Pointers of a refusal."""
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return [error["pointer"] for error in answer.json()["errors"]]


@on_both
def test_in_any_parameter_of_any_route(client: TestClient, workload: str) -> None:
    tried = 0
    for method, path, operation in operations(client):
        for name in names(operation, "path"):
            answer = client.request(method, filled(path, operation, name, workload))
            assert refusal(answer) == [f"/path/{name}"], path
            tried += 1
        for name in names(operation, "query"):
            answer = client.request(method, filled(path, operation, "", workload), params={name: "a\0b"})
            assert refusal(answer) == [f"/query/{name}"], path
            tried += 1
    assert tried > 50


NUL = "a\0b"
POSTGRESQL = pytest.param("postgres_database", NUL, marks=pytest.mark.servers, id="postgresql")  # which takes no NUL


@pytest.mark.parametrize(
    ("backend", "odd"),
    [*(("database", odd) for odd in (NUL, "\ud800", "\udfff tail")), POSTGRESQL],
    indirect=["backend"],
)
def test_in_the_body_of_any_route(client: TestClient, workload: str, odd: str) -> None:
    tried = 0
    for method, path, operation in operations(client):
        if "requestBody" not in operation or path == STREAMED:
            continue
        for body, pointer in (({"a": [0, {"b/c": odd}]}, "/a/1/b~1c"), ({"a": {odd: 1}}, "/a"), ([odd], "/0")):
            content = json.dumps(body).encode()
            answer = client.request(
                method,
                filled(path, operation, "", workload),
                content=content,
                headers={"content-type": "application/json"},
            )
            assert refusal(answer) == [pointer], path
            assert MESSAGE in answer.json()["detail"]
            tried += 1
    assert tried >= 3 * 8


@on_both
def test_in_uploads(client: TestClient, workload: str) -> None:
    sample = {"execution": "a\0b", "reports": [REPORT]}
    for media_type, content in (
        ("application/json", json.dumps({"samples": [sample]})),
        ("application/x-ndjson", json.dumps(sample)),
        ("application/x-ndjson", json.dumps({**sample, "execution": "\ud800"})),
        ("text/csv", "execution,iteration,gpus,iteration_seconds,batch\na\0b,0,4,31.5,128\n"),
    ):
        headers = {"content-type": media_type}
        answer = client.post(f"/workloads/{workload}/samples", content=content.encode(), headers=headers)
        assert answer.status_code == 422, (media_type, answer.text)


def test_a_member_that_is_named_twice(client: TestClient, spec: dict[str, Any]) -> None:
    text = json.dumps(spec).replace('"name": "gpus"', '"name": "cpus", "name": "gpus"')
    assert refusal(client.post("/workloads", content=text, headers=JSON)) == ["/resources/0/name"]


def test_a_report_that_names_a_member_twice(client: TestClient, workload: str) -> None:
    run = client.post("/runs", json={"workload": workload}).json()["id"]
    path, text = f"/runs/{run}/iterations/0", json.dumps(REPORT)
    for name in ("gpus", "allocation"):
        twice = text.replace(f'"{name}":', f'"{name}": 1, "{name}" :')
        assert client.put(path, content=twice, headers=JSON).status_code == 422
    nested = text.replace('"gpus":', '"gpus": 1, "gpus":')
    assert refusal(client.put(path, content=nested, headers=JSON)) == ["/allocation/gpus"]
    assert client.put(path, content=text[:-1] + ', "kind": "iterative"}', headers=JSON).status_code == 201


@on_both
def test_what_only_looks_like_it_is_taken(client: TestClient, spec: dict[str, Any]) -> None:
    for number, harmless in enumerate(("a pair \U0001f600", "an escaped \\u0000 and \\ud800", "é\u2028")):
        named = {**spec, "name": f"w{number}", "description": harmless}
        content = json.dumps(named).encode()
        answer = client.post("/workloads", content=content, headers=JSON)
        assert MESSAGE not in answer.text
        assert answer.status_code < 500
