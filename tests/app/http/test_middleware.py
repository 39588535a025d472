from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from app.database.engine import Database
from app.database.tables import Workload
from app.http import problems
from app.http.middleware import BodyLimit, Deadline, Metrics
from app.settings import Settings

SETTINGS = Settings(
    json_limit_bytes=1000, upload_limit_bytes=5000, request_timeout_seconds=0.2, upload_timeout_seconds=0.2
)


class Slow:
    """What a slow request does to the database."""

    def __init__(self) -> None:
        self.finished = threading.Event()


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def app(database: Database, slow: Slow) -> FastAPI:
    app = FastAPI()
    app.state.settings = SETTINGS
    registry = app.state.registry = CollectorRegistry()
    problems.install(app)

    @app.post("/echo")
    async def echo(request: Request) -> int:
        return len(await request.body())

    @app.post("/w/samples")
    async def samples(request: Request) -> int:
        return sum([len(chunk) async for chunk in request.stream()])

    @app.post("/w/slow/samples")
    @app.get("/slow")
    async def wait() -> str:
        await asyncio.sleep(30)
        return "too late"

    @app.post("/write")
    def write() -> str:
        try:
            with database.session() as session:
                session.add(Workload(name="late", kind="iterative", spec={}))
                session.flush()
                time.sleep(0.5)
        finally:
            slow.finished.set()
        return "written"

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("secret detail")

    app.add_middleware(BodyLimit, settings=SETTINGS)
    app.add_middleware(Deadline, settings=SETTINGS)
    app.add_middleware(Metrics, registry=registry)
    return app


@pytest.fixture
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize(("path", "limit"), [("/echo", 1000), ("/w/samples", 5000)])
def test_bodies_up_to_the_limit_pass(client: TestClient, path: str, limit: int) -> None:
    assert client.post(path, content=b"x" * limit).json() == limit


@pytest.mark.parametrize(("path", "limit"), [("/echo", 1000), ("/w/samples", 5000)])
def test_a_body_beyond_its_declared_limit_is_refused_unread(client: TestClient, path: str, limit: int) -> None:
    answer = client.post(path, content=b"x" * (limit + 1))
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/too-large"
    assert f"{limit:,}" in answer.json()["detail"]


@pytest.mark.parametrize(("path", "chunks"), [("/echo", 5), ("/w/samples", 20)])
def test_a_body_of_unknown_length_is_cut_while_it_is_read(client: TestClient, path: str, chunks: int) -> None:
    def endless() -> Iterator[bytes]:
        for _ in range(chunks):
            yield b"x" * 500

    answer = client.post(path, content=endless())
    assert answer.status_code == 413
    assert answer.json()["instance"] == path


def test_a_slow_request_ends_as_503(client: TestClient) -> None:
    started = time.monotonic()
    answer = client.get("/slow")
    assert time.monotonic() - started < 10
    assert answer.status_code == 503
    assert answer.json()["type"] == "/problems/timeout"
    assert answer.headers["retry-after"] == "2"


def test_a_request_that_timed_out_writes_nothing(client: TestClient, slow: Slow, database: Database) -> None:
    answer = client.post("/write")
    assert answer.status_code == 503
    assert slow.finished.wait(10)
    with database.reading() as session:
        assert session.query(Workload).count() == 0


def test_only_an_upload_that_timed_out_may_have_written_something(client: TestClient) -> None:
    assert client.get("/slow").json()["detail"].endswith("nothing was written")
    assert "what was stored by then is kept" in client.post("/w/slow/samples").json()["detail"]


async def test_a_slow_request_is_answered_just_once(app: FastAPI) -> None:
    sent: list[Message] = []
    stack = app.build_middleware_stack()

    async def receive() -> Message:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: Scope = {"type": "http", "method": "GET", "path": "/slow", "headers": [], "query_string": b"", "app": app}
    await stack(scope, receive, send)
    assert [message.get("status") for message in sent] == [503, None]


def test_a_defect_is_a_problem_that_tells_nothing_of_its_inside(client: TestClient) -> None:
    answer = client.get("/broken")
    assert answer.status_code == 500
    assert answer.json()["status"] == 500
    assert "secret" not in answer.text


def test_requests_are_counted_by_route_and_status(client: TestClient, app: FastAPI) -> None:
    client.post("/echo", content=b"x")
    client.post("/echo", content=b"x" * 2000)
    client.get("/nothing/here")
    client.get("/broken")
    value = app.state.registry.get_sample_value
    labels = {"method": "POST", "route": "/echo"}
    assert value("steward_requests_total", {**labels, "status": "200"}) == 1
    assert value("steward_requests_total", {"method": "any", "route": "unknown", "status": "404"}) == 1
    assert value("steward_requests_total", {"method": "GET", "route": "/broken", "status": "500"}) == 1
    assert value("steward_request_seconds_count", labels) == 1


async def test_other_protocols_pass_untouched() -> None:
    seen: list[str] = []

    async def inner(scope: Scope, _receive: Receive, _send: Send) -> None:
        seen.append(scope["type"])

    async def nothing() -> Message:
        return {"type": "none"}

    async def drop(_message: Message) -> None:
        return None

    for layer in (BodyLimit(inner, SETTINGS), Deadline(inner, SETTINGS), Metrics(inner, CollectorRegistry())):
        await layer({"type": "websocket"}, nothing, drop)
    assert seen == ["websocket"] * 3
