"""What every request passes, on hot routes as on ordinary ones: limits, time, errors, metering."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from fastapi.testclient import TestClient
from prometheus_client import CollectorRegistry
from starlette.types import Message, Receive, Scope, Send

from app.database.engine import Database
from app.database.tables import Workload
from app.errors import Conflict
from app.http import problems
from app.http.exchange import GRACE_SECONDS, Answer, Exchange, HotRoute
from app.http.gateway import Gateway
from app.http.health import RequestMeter
from app.settings import Settings
from tests.callers import Open

SETTINGS = Settings(json_limit_bytes=1000, upload_limit_bytes=5000, request_timeout_seconds=0.2)


class Slow:
    """What a slow request does to the database."""

    def __init__(self) -> None:
        self.finished = threading.Event()


@pytest.fixture
def slow() -> Slow:
    return Slow()


async def hot_echo(request: Exchange) -> Answer:
    return Answer(201, b"%d" % len(await request.body()), [(b"x-name", request.path["name"].encode())])


async def hot_slow(_: Exchange) -> Answer:
    await asyncio.sleep(30)
    return Answer(200, b"too late")


async def hot_committing(request: Exchange) -> Answer:
    once, twice = (request.started + times * SETTINGS.request_timeout_seconds + GRACE_SECONDS for times in (1, 2))
    assert request.deadline.when() == pytest.approx(once, abs=0.01)
    request.commit()
    assert request.deadline.when() == pytest.approx(once, abs=0.01)
    request.started -= 2 * GRACE_SECONDS  # as if it had waited
    request.commit()
    assert request.deadline.when() == pytest.approx(twice, abs=0.01)
    await asyncio.sleep(30)
    return Answer(200, b"too late")


async def hot_broken(_: Exchange) -> Answer:
    raise RuntimeError("secret detail")


async def hot_conflict(_: Exchange) -> Answer:
    raise Conflict("not now")


HOT = [
    HotRoute("/hot/echo/{name}", hot_echo, "POST"),
    HotRoute("/hot/slow", hot_slow, "GET"),
    HotRoute("/hot/committing", hot_committing, "GET"),
    HotRoute("/hot/broken", hot_broken, "GET"),
    HotRoute("/hot/conflict", hot_conflict, "GET"),
]


@pytest.fixture
def served(database: Database, slow: Slow) -> FastAPI:
    app = FastAPI()
    app.state.settings, app.state.registry = SETTINGS, CollectorRegistry()
    problems.install(app)
    app.router.routes[:0] = HOT
    _answering(app)
    _waiting(app, database, slow)
    return app


def _answering(app: FastAPI) -> None:
    @app.post("/echo/{name}", status_code=201)
    async def echo(request: Request) -> int:
        return len(await request.body())

    @app.post("/w/samples")
    async def samples(request: Request) -> int:
        return sum([len(chunk) async for chunk in request.stream()])

    @app.get("/broken")
    def broken() -> None:
        raise RuntimeError("secret detail")

    @app.get("/conflict")
    def conflict() -> None:
        raise Conflict("not now")


def _waiting(app: FastAPI, database: Database, slow: Slow) -> None:
    @app.get("/slow")
    async def wait() -> str:
        await asyncio.sleep(30)
        return "too late"

    @app.get("/held")
    def respond() -> str:
        assert slow.finished.wait(10)
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

    @app.get("/endless")
    async def endless() -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            while True:
                yield b"x"
                await asyncio.sleep(0.01)

        return StreamingResponse(pieces(), media_type="application/json")


@pytest.fixture
def gateway(served: FastAPI) -> Gateway:
    return Gateway(served, served, HOT, Open(), RequestMeter(served.state.registry), SETTINGS)


@pytest.fixture
def client(gateway: Gateway) -> Iterator[TestClient]:
    with TestClient(gateway, raise_server_exceptions=False) as client:
        yield client


BODIES = [("/echo/x", 1000), ("/hot/echo/x", 1000), ("/w/samples", 5000)]
PREFIXES = pytest.mark.parametrize("prefix", ["", "/hot"])
JSON = {"content-type": "application/json; charset=utf-8"}


@pytest.mark.parametrize(("path", "limit"), BODIES)
def test_bodies_up_to_the_limit_pass(client: TestClient, path: str, limit: int) -> None:
    assert client.post(path, content=b"x" * limit, headers=JSON).json() == limit


@pytest.mark.parametrize(("path", "limit"), BODIES)
def test_a_body_beyond_its_declared_limit_is_refused_unread(client: TestClient, path: str, limit: int) -> None:
    answer = client.post(path, content=b"x" * (limit + 1), headers=JSON)
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"] == "/problems/too-large"
    assert f"{limit:,}" in answer.json()["detail"]


@pytest.mark.parametrize(("path", "limit"), BODIES)
def test_a_body_of_unknown_length_is_cut_while_it_is_read(client: TestClient, path: str, limit: int) -> None:
    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b"x" * 500

    answer = client.post(path, content=pieces(limit // 500), headers=JSON)
    assert (answer.is_success, answer.json()) == (True, limit)
    answer = client.post(path, content=pieces(limit // 500 + 1), headers=JSON)
    assert answer.status_code == 413
    assert answer.json()["instance"] == path


@pytest.mark.parametrize("header", ["content-type", "content-encoding"])
@pytest.mark.parametrize("path", ["/echo/x", "/hot/echo/x"])
def test_a_body_that_is_no_plain_json_is_refused_unread(client: TestClient, path: str, header: str) -> None:
    wrong = {**JSON, header: "gzip"}
    answer = client.post(path, content=b"{}", headers=wrong)
    pointers = [error["pointer"].lower() for error in answer.json()["errors"]]
    assert (answer.status_code, pointers) == (415, [f"/header/{header}"])
    assert client.post(path, headers=wrong).status_code == 201  # where there is no body, there is nothing to read
    assert client.post("/w/samples", content=b"{}", headers=wrong).status_code == 200  # which sees to it by itself


@PREFIXES
def test_a_slow_request_ends_as_503(client: TestClient, prefix: str) -> None:
    started = time.monotonic()
    answer = client.get(f"{prefix}/slow")
    assert time.monotonic() - started < 10
    assert answer.status_code == 503
    assert answer.json()["type"] == "/problems/timeout"
    assert answer.headers["retry-after"] == "2"


def test_a_commit_has_the_time_limit_and_is_never_said_not_to_be_done(client: TestClient) -> None:
    assert "timed out after 0.2 s; repeat" in client.get("/hot/slow").json()["detail"]
    detail = client.get("/hot/committing").json()["detail"]
    assert "the outcome is unknown; repeat the request" in detail


def test_a_request_that_timed_out_writes_nothing(client: TestClient, slow: Slow, database: Database) -> None:
    answer = client.post("/write")
    assert answer.status_code == 503
    assert slow.finished.wait(10)
    with database.reading() as session:
        assert session.query(Workload).count() == 0


@pytest.mark.parametrize("path", ["/slow", "/hot/slow"])
async def test_a_slow_request_is_answered_just_once(gateway: Gateway, path: str) -> None:
    sent = await called(gateway, "GET", path)
    assert [message.get("status") for message in sent] == [503, None]


async def test_a_request_held_by_a_thread_is_answered_all_the_same(gateway: Gateway, slow: Slow) -> None:
    def answered(message: Message) -> None:
        if message["type"] == "http.response.body":
            slow.finished.set()

    sent = await called(gateway, "GET", "/held", answered)
    assert [message.get("status") for message in sent] == [503, None]


async def called(
    gateway: Gateway, method: str, path: str, heard: Callable[[Message], None] = lambda _: None
) -> list[Message]:
    """All that is sent in answer to a request without a body."""
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)
        heard(message)

    scope: Scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    await gateway({**scope, "server": ("test", 80), "scheme": "http"}, receive, send)
    return sent


@PREFIXES
def test_a_client_that_goes_away_in_the_middle_is_a_bad_request(gateway: Gateway, prefix: str) -> None:
    async def receive() -> Message:
        return {"type": "http.disconnect"}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"content-length", b"5")]
    scope: Scope = {"type": "http", "method": "POST", "path": f"{prefix}/echo/x", "headers": headers}
    asyncio.run(gateway({**scope, "query_string": b"", "server": ("test", 80), "scheme": "http"}, receive, send))
    assert sent[0]["status"] == 400


@PREFIXES
def test_errors_are_problem_documents(client: TestClient, prefix: str) -> None:
    answer = client.get(f"{prefix}/conflict")
    assert (answer.status_code, answer.json()["detail"]) == (409, "not now")
    assert answer.headers["content-type"] == "application/problem+json"


@PREFIXES
def test_a_defect_is_a_problem_that_tells_nothing_of_its_inside(
    client: TestClient, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = client.get(f"{prefix}/broken")
    assert (answer.status_code, answer.json()["status"]) == (500, 500)
    assert answer.headers["content-type"] == "application/problem+json"
    assert "secret" not in answer.text
    assert "secret" in caplog.text or not prefix  # an ordinary one goes on to the server, which logs it


@PREFIXES
def test_head_is_get_without_its_body(client: TestClient, prefix: str) -> None:
    response, head = client.get(f"{prefix}/conflict"), client.head(f"{prefix}/conflict")
    assert (head.status_code, head.content) == (response.status_code, b"")
    assert head.headers == response.headers


def test_head_of_an_endless_stream_ends(client: TestClient) -> None:
    head = client.head("/endless")
    assert (head.status_code, head.content) == (200, b"")


@PREFIXES
def test_requests_are_counted_by_route_and_status(client: TestClient, served: FastAPI, prefix: str) -> None:
    client.post(f"{prefix}/echo/x", content=b"x", headers=JSON)
    client.post(f"{prefix}/echo/x", content=iter([b"x" * 600] * 2), headers=JSON)
    client.get(f"{prefix}/nothing/here")
    client.get(f"{prefix}/broken")
    value = served.state.registry.get_sample_value
    labels = {"method": "POST", "route": f"{prefix}/echo/{{name}}"}
    assert value("steward_requests_total", {**labels, "status": "201"}) == 1
    assert value("steward_requests_total", {**labels, "status": "413"}) == 1
    assert value("steward_requests_total", {"method": "any", "route": "unknown", "status": "404"}) == 1
    assert value("steward_requests_total", {"method": "GET", "route": f"{prefix}/broken", "status": "500"}) == 1
    assert value("steward_request_seconds_count", labels) == 2
    assert value("steward_request_seconds_bucket", {**labels, "le": "30.0"}) == 2
    assert 0 < (value("steward_request_seconds_sum", labels) or 0) < 60


@PREFIXES
def test_methods_that_callers_make_up_are_counted_as_one(client: TestClient, served: FastAPI, prefix: str) -> None:
    for method in ("PROPFIND", "BREW", "LOCK"):
        client.request(method, f"{prefix}/echo/x")
    meter = next(family for family in served.state.registry.collect() if family.name == "steward_requests")
    assert {sample.labels["method"] for sample in meter.samples} == {"any"}
    assert len(meter.samples) <= 2


async def test_other_protocols_pass_untouched(served: FastAPI) -> None:
    visited: list[str] = []

    async def inner(scope: Scope, _receive: Receive, _send: Send) -> None:
        visited.append(scope["type"])

    async def nothing() -> Message:
        return {"type": "none"}

    async def drop(_message: Message) -> None:
        return None

    layer = Gateway(served, inner, HOT, Open(), RequestMeter(CollectorRegistry()), SETTINGS)
    await layer({"type": "websocket"}, nothing, drop)
    assert visited == ["websocket"]
