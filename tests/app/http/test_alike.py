"""Hot and ordinary routes of the application answer alike: whoever knows one route knows them all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.batched import SPEC as EXAMPLE

REPORT: dict[str, Any] = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
JSON = "application/json"


@dataclass(frozen=True)
class Written:
    """A route that takes a body: method, path, and a body that it accepts."""

    method: str
    path: str
    body: dict[str, Any]


@pytest.fixture
def run(client: TestClient, workload: str) -> str:
    return str(client.post("/runs", json={"workload": workload}).json()["id"])


@pytest.fixture(params=["hot", "ordinary"])
def written(request: pytest.FixtureRequest, run: str) -> Written:
    if request.param == "hot":
        return Written("PUT", f"/runs/{run}/iterations/0", REPORT)
    return Written("POST", "/workloads", EXAMPLE)


@pytest.fixture(params=["hot", "hot, of a run", "ordinary"])
def read(request: pytest.FixtureRequest, run: str, workload: str) -> str:
    """Path and query of a GET that answers JSON."""
    state = "iteration=11&allocation=gpus:4&metric=iteration_seconds:31.5&feature=batch:128"
    return {
        "hot": f"/decision?workload={workload}&{state}",
        "hot, of a run": f"/decision?run={run}",
        "ordinary": "/workloads?limit=5",
    }[request.param]


Send = Callable[..., Any]


@pytest.fixture
def send(client: TestClient, written: Written) -> Send:
    def send(content: bytes, **headers: str) -> Any:
        values = {"content-type": JSON} | {name.replace("_", "-"): value for name, value in headers.items()}
        values = {name: value for name, value in values.items() if value}
        return client.request(written.method, written.path, content=content, headers=values)

    return send


def refused(answer: Any) -> tuple[int, list[str]]:
    """Status and pointers of a problem document."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.content.endswith(b"}\n")
    return answer.status_code, [error["pointer"] for error in answer.json().get("errors", ())]


@pytest.mark.parametrize("media_type", ["text/plain", "", "application/x-www-form-urlencoded", "text/x+json"])
def test_another_content_type(send: Send, media_type: str) -> None:
    assert refused(send(b"{}", content_type=media_type)) == (415, ["/header/Content-Type"])


@pytest.mark.parametrize("media_type", ["application/json;charset=utf-8", "Application/JSON", "application/x+json"])
def test_json_by_other_names(send: Send, media_type: str) -> None:
    assert refused(send(b"{}", content_type=media_type))[0] == 422


@pytest.mark.parametrize("encoding", ["gzip", "br", "gzip, identity"])
def test_packed_bodies(send: Send, encoding: str) -> None:
    assert refused(send(b"{}", content_encoding=encoding)) == (415, ["/header/Content-Encoding"])
    assert refused(send(b"{}", content_encoding="identity"))[0] == 422


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b'{"a": \xff}'])
def test_what_is_no_json_is_pointed_at_as_a_whole(send: Send, content: bytes) -> None:
    status, pointers = refused(send(content))
    assert (status, pointers) == (422, [""])


@pytest.mark.parametrize("depth", [100, 250, 600, 900, 5_000])
def test_nesting(send: Send, depth: int) -> None:
    assert refused(send(b"[" * depth + b"]" * depth))[0] == 422
    assert refused(send(b'{"metrics": ' + b"[" * depth + b"]" * depth + b"}"))[0] == 422


def test_a_field_is_pointed_at(client: TestClient, written: Written) -> None:
    answer = client.request(written.method, written.path, json={**written.body, "colour~/": "red"})
    assert refused(answer) == (422, ["/colour~0~1"])


def test_unknown_and_repeated_query_parameters(client: TestClient, read: str) -> None:
    assert client.get(read).status_code == 200
    assert refused(client.get(f"{read}&colour=red")) == (422, ["/query/colour"])
    name = read.partition("?")[2].partition("=")[0]
    assert refused(client.get(f"{read}&{name}=x")) == (422, [f"/query/{name}"])


def test_unknown_query_parameters_of_what_takes_a_body(client: TestClient, written: Written) -> None:
    answer = client.request(written.method, f"{written.path}?colour=red", json=written.body)
    assert refused(answer) == (422, ["/query/colour"])


def test_head_is_answered_as_get_without_the_body(client: TestClient, read: str) -> None:
    response, head = client.get(read), client.head(read)
    assert (head.status_code, head.content, dict(head.headers)) == (200, b"", dict(response.headers))
    missing, head = client.get("/decision?run=none"), client.head("/decision?run=none")
    assert (head.status_code, head.content, dict(head.headers)) == (404, b"", dict(missing.headers))


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/decision", "GET, HEAD"),
        ("/runs/x/iterations/0", "PUT"),
        ("/runs/x", "DELETE, GET, HEAD, PATCH"),
        ("/runs", "GET, HEAD, POST"),
        ("/workloads", "GET, HEAD, POST"),
        ("/workloads/x", "DELETE, GET, HEAD, PATCH"),
        ("/workloads/x/samples", "DELETE, GET, HEAD, POST"),
    ],
)
def test_other_methods_are_told_all_that_there_are(client: TestClient, path: str, allowed: str) -> None:
    for method in sorted({"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"} - set(allowed.split(", "))):
        answer = client.request(method, path, headers={"content-type": JSON})
        assert (answer.status_code, answer.headers["allow"]) == (405, allowed), method


def test_json_ends_with_a_line_feed(client: TestClient, written: Written, read: str) -> None:
    for answer in (client.get(read), client.request(written.method, written.path, json=written.body)):
        assert answer.is_success
        assert answer.content.endswith(b"}\n")
        assert int(answer.headers["content-length"]) == len(answer.content)


def test_an_answer_without_content_stays_empty(client: TestClient, workload: str) -> None:
    answer = client.delete(f"/workloads/{workload}")
    assert (answer.status_code, answer.content) == (204, b"")


def test_what_is_no_json_has_a_head_too(client: TestClient) -> None:
    assert client.head("/docs").status_code == 200
    assert client.head("/metrics").content == b""
