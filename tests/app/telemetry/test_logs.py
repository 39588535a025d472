"""The log: one line a record whatever a caller sends, ids that join lines, and nothing secret."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from app.database.engine import Database
from app.keys import service as keys
from app.keys.service import KeyRequest
from app.main import create_app
from app.settings import Settings
from app.telemetry import requests
from app.telemetry.logs import INDENT, JsonFormatter, TextFormatter, began, escape, working
from app.telemetry.requests import Answered, RequestLog, pieces

FORGED = 'ordinary\n2026-11-23 12:00:00,000 INFO steward: all is well\r\x1b[2J\x85\u2028{"level": "info"}'
ANSWERED: Answered = (1.8e9, 0.0042, "GET", "/decision", 200, "default", "key:k", b"r-1", began(None), b"")


def record(message: str, error: Exception | None = None) -> logging.LogRecord:
    info = None if error is None else (type(error), error, error.__traceback__)
    return logging.LogRecord("steward", logging.WARNING, __file__, 1, "%s", (message,), info)


@given(st.text())
def test_no_text_begins_a_line(text: str) -> None:
    assert escape(text).splitlines() == ([escape(text)] if text else [])
    assert len(TextFormatter("%(message)s").format(record(text)).splitlines()) <= 1
    assert json.loads(JsonFormatter().format(record(text)))["message"] == text


def test_a_tracebacks_lines_are_indented() -> None:
    first, *rest = TextFormatter("%(levelname)s %(message)s").format(record(FORGED, ValueError(FORGED))).splitlines()
    assert first.startswith("WARNING ordinary\\n2026")
    assert rest
    assert all(line.startswith(INDENT) for line in rest)
    line = JsonFormatter().format(record(FORGED, ValueError(FORGED)))
    assert line.isascii()
    assert line.isprintable()
    assert "ValueError" in json.loads(line)["exception"]


def test_lines_of_work_bear_its_ids() -> None:
    trace = began(None)
    with working(trace, "j"):
        answer = json.loads(JsonFormatter().format(record("x")))
    assert (answer["trace_id"], answer["span_id"], answer["job"]) == (trace.trace_id, trace.span_id, "j")
    assert "trace_id" not in json.loads(JsonFormatter().format(record("x")))


@given(st.lists(st.integers(0, 6000).map(lambda size: b"x" * size)))
def test_pieces_hold_all_lines_whole(lines: list[bytes]) -> None:
    whole = list(pieces(iter(lines)))
    assert b"".join(whole) == b"".join(line + b"\n" for line in lines)
    assert all(len(piece) <= requests.PIECE_BYTES or piece.count(b"\n") == 1 for piece in whole)


class Lines(io.BytesIO):
    """What was written, as it was read."""

    def read_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.getvalue().splitlines()]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Lines:
    """Where the lines of requests go."""
    lines = Lines()
    monkeypatch.setattr("app.telemetry.requests._standard_error", lambda: lines)
    return lines


@pytest.fixture
def telling(settings: Settings, database: Database, written: Lines) -> Iterator[TestClient]:
    """A client of a service that tells of its requests."""
    app = create_app(settings.model_copy(update={"log_requests": True, "log_format": "json"}), database)
    with TestClient(app) as client:
        yield client


def test_a_request_is_one_line_with_its_decision(
    telling: TestClient, written: Lines, spec: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    telling.post("/workloads", json=spec)
    run = telling.post("/runs", json={"workload": spec["name"]}).json()["id"]
    report = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 20.0}, "features": {"batch": 128}}
    trace, headers = began(None), {"X-Request-ID": "mine-1"}
    headers["traceparent"] = trace.traceparent
    answer = telling.put(f"/runs/{run}/iterations/0", json=report, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["x-request-id"] == "mine-1"
    odd = telling.get("/nowhere", headers={"X-Request-ID": 'no "id"'})
    assert "x-request-id" not in odd.headers
    telling.__exit__(None, None, None)
    registered, started, put, nowhere = written.read_lines()
    assert (registered["status"], started["route"]) == (201, "/runs")
    decision = answer.json()
    assert (put["run"], put["workload"], put["iteration"]) == (run, spec["name"], 1)
    assert (put["source"], put["policy"]) == (decision["source"], decision["policy"])
    assert put["reason"] == {"code": decision["reason"]["code"]}
    assert (put["request_id"], put["trace_id"], put["tenant"]) == ("mine-1", trace.trace_id, "default")
    assert (nowhere["status"], nowhere["route"], "request_id" in nowhere) == (404, "unknown", False)
    assert len({line["span_id"] for line in (registered, started, put, nowhere)}) == 4
    assert datetime.fromisoformat(put["time"]).tzinfo == UTC


def test_no_secret_reaches_a_line(
    settings: Settings, database: Database, written: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    result = keys.create(database, "default", KeyRequest(scopes=["admin"], name="n"), "test")
    app = create_app(settings.model_copy(update={"log_requests": True}), database)
    with TestClient(app) as client:
        headers = {"Authorization": f"Bearer {result.key}"}
        assert client.get("/workloads", headers=headers).status_code == 200
        assert client.get("/workloads", headers={"Authorization": f"Bearer {result.key}x"}).status_code == 401
        token = client.post("/keys", json={"scopes": ["read"]}, headers=headers).json()["key"]
    output = written.getvalue().decode() + caplog.text
    assert "GET /workloads 200" in output
    assert f"key:{result.id}" in output
    for secret in (str(result.key), token):
        assert secret[-16:] not in output  # nor is a part of it


def test_lines_for_people_are_one_line_each() -> None:
    odd = (*ANSWERED[:6], f"subject:{FORGED}", *ANSWERED[7:])
    (line,) = asyncio.run(written_by(RequestLog(json=False, stream=(out := Lines())), out, [odd])).splitlines()
    assert line.decode().startswith("2027-01-15 08:00:00,000 INFO steward.requests: GET /decision 200 trace_id=")
    assert b" seconds=0.0042" in line
    (line,) = asyncio.run(written_by(RequestLog(json=True, stream=(out := Lines())), out, [odd])).splitlines()
    assert json.loads(line)["caller"] == escape(f"subject:{FORGED}")


async def written_by(log: RequestLog, out: Lines, answered: list[Answered]) -> bytes:
    for one in answered:
        log.add(one)
    await log.close()
    return out.getvalue()


async def test_lines_that_nobody_reads_are_counted_and_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "MOST_LINES", 10)
    monkeypatch.setattr(requests, "FLUSH_SECONDS", 0.001)
    read = threading.Event()

    class Slow(Lines):
        def write(self, piece: Any) -> int:
            read.wait()
            return super().write(piece)

    out = Slow()
    log = RequestLog(json=True, stream=out)
    log.add(ANSWERED)
    while log._writing is None:
        await asyncio.sleep(0.001)
    for _ in range(25):
        log.add(ANSWERED)
    read.set()
    await log.close()
    assert [line.get("lost", 0) for line in out.read_lines()] == [0] * 10 + [15]


async def test_lines_whose_reader_is_gone_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "FLUSH_SECONDS", 0.001)
    gone = True

    class Pipe(Lines):
        def write(self, piece: Any) -> int:
            if gone:
                raise BrokenPipeError
            return super().write(piece)

    log = RequestLog(json=True, stream=(out := Pipe()))
    log.add(ANSWERED)
    while not log._lost:
        await asyncio.sleep(0.001)
    gone = False
    log.add(ANSWERED)
    await log.close()
    assert [line["lost"] for line in out.read_lines()] == [1]


def test_a_decision_that_is_no_object_is_left_out() -> None:
    odd = (*ANSWERED[:9], b"[1]")
    written = asyncio.run(written_by(RequestLog(json=True, stream=(out := Lines())), out, [odd]))
    assert "source" not in json.loads(written)
