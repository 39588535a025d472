"""Hot routes: the same errors and limits as any endpoint, and batches that isolate failures."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.errors import Conflict
from app.http import problems
from app.http.fast_path import Answer, HotPath, HotRequest, HotRoute, MicroBatch, query
from app.settings import Settings

SETTINGS = Settings(json_limit_bytes=100, request_timeout_seconds=0.2)
Counted = list[tuple[str, str, int]]


async def echo(request: HotRequest) -> Answer:
    body = await request.json_body()
    return Answer(201, body, [(b"x-path", request.path["name"].encode())])


async def fail(request: HotRequest) -> Answer:
    if "slow" in query(request):
        await asyncio.sleep(30)
    raise Conflict("not now") if "conflict" in query(request) else ZeroDivisionError("a defect")


@pytest.fixture
def counted() -> Counted:
    return []


@pytest.fixture
def client(counted: Counted) -> TestClient:
    app = FastAPI()
    app.state.settings = SETTINGS
    problems.install(app)
    routes = [HotRoute("/echo/{name}", echo, "PUT"), HotRoute("/fail", fail, "GET")]
    app.router.routes[:0] = routes

    def count(method: str, route: str, status: int, _: float) -> None:
        counted.append((method, route, status))

    return TestClient(HotPath(app, app, routes, count, SETTINGS), raise_server_exceptions=False)


def test_a_hot_route_answers_and_is_counted(client: TestClient, counted: Counted) -> None:
    answer = client.put("/echo/x", content=b'{"a": 1}', headers={"content-type": "application/json; charset=utf-8"})
    assert (answer.status_code, answer.json(), answer.headers["x-path"]) == (201, {"a": 1}, "x")
    assert counted == [("PUT", "/echo/{name}", 201)]


@pytest.mark.parametrize(
    ("content", "media", "status"),
    [(b"{}", "text/csv", 415), (b"x" * 101, "application/json", 413), (b"x" * 100, "application/json", 201)],
)
def test_bodies_are_json_within_the_limit(client: TestClient, content: bytes, media: str, status: int) -> None:
    answer = client.put("/echo/x", content=content, headers={"content-type": media})
    assert answer.status_code == status

    def streamed() -> Sequence[bytes]:
        return [content[:1], content[1:]]

    assert client.put("/echo/x", content=iter(streamed()), headers={"content-type": media}).status_code == status


def test_errors_are_problem_documents(client: TestClient, counted: Counted) -> None:
    conflict, defect = client.get("/fail?conflict"), client.get("/fail")
    assert (conflict.status_code, conflict.json()["detail"]) == (409, "not now")
    assert (defect.status_code, defect.headers["content-type"]) == (500, "application/problem+json")
    assert "a defect" not in defect.text
    assert [status for *_, status in counted] == [409, 500]


def test_a_request_that_takes_too_long_is_503(client: TestClient) -> None:
    answer = client.get("/fail?slow")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/timeout")
    assert int(answer.headers["retry-after"]) >= 1


def test_other_methods_and_paths_go_on(client: TestClient) -> None:
    assert client.post("/fail").status_code == 405
    assert client.get("/nothing").status_code == 404


def test_what_arrives_together_is_evaluated_together() -> None:
    batches: list[tuple[str, list[int]]] = []

    def evaluate(key: str, items: list[int]) -> list[bytes]:
        batches.append((key, items))
        return [f"{key}{item}".encode() for item in items]

    async def run() -> list[bytes]:
        batch = MicroBatch(evaluate, largest=8)
        return list(await asyncio.gather(*(batch.submit("ab"[i % 2], i) for i in range(20))))

    assert asyncio.run(run()) == [f"{'ab'[i % 2]}{i}".encode() for i in range(20)]
    assert all(len(items) <= 8 for _, items in batches)
    assert len(batches) == 6


def test_one_bad_item_fails_alone() -> None:
    def evaluate(_: str, items: list[int]) -> list[bytes]:
        return [b"%d" % (6 // item) for item in items]

    async def run() -> list[bytes | BaseException]:
        batch = MicroBatch(evaluate)
        return await asyncio.gather(*(batch.submit("a", i) for i in (1, 0, 2, 3)), return_exceptions=True)

    found = asyncio.run(run())
    assert [found[0], *found[2:]] == [b"6", b"3", b"2"]
    assert isinstance(found[1], ZeroDivisionError)
