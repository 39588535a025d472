"""Calls of a service from outside: refusals in words, and a job followed through whatever happens to its service."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from rich.console import Console

from app.cli.remote import service, train
from app.cli.remote.service import RefusedError, Service, UnreachableError

PROBLEM = {"type": "/problems/invalid", "title": "Invalid input", "status": 422, "detail": "seeds must be 5 or more"}
Handler = Callable[[httpx.Request], httpx.Response]


def of(handler: Handler) -> Service:
    """A client whose service is `handler`."""
    service = Service("http://there")
    service._http.close()
    service._http = httpx.Client(base_url="http://there", transport=httpx.MockTransport(handler))
    return service


def frames(*numbers: int) -> str:
    return "".join(f'id: {n}\nevent: running\ndata: {{"state": "running", "progress": {n / 10}}}\n\n' for n in numbers)


def away(_request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("refused")


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time goes by without anybody waiting: ten seconds at every look at the clock."""
    clock = itertools.count(0.0, 10.0)
    monkeypatch.setattr(
        service, "time", type("Clock", (), {"monotonic": lambda: next(clock), "sleep": lambda _s: None})
    )


class Restarted:
    """Answers with two events, is away twice, answers with the others, then with the job's end."""

    def __init__(self, ended: dict[str, Any]) -> None:
        self.ended, self.after = ended, list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/events"):
            if len(self.after) < 4:
                return away(request)
            return httpx.Response(200, json=self.ended)
        self.after.append(request.headers.get("last-event-id", ""))
        if len(self.after) in (2, 3):
            return away(request)
        return httpx.Response(200, text=frames(1, 2) if len(self.after) == 1 else frames(3))


def test_a_job_is_followed_through_a_restart_without_a_gap() -> None:
    played = Restarted({"id": "j", "state": "succeeded", "progress": 1.0})
    with of(played) as calls:
        entries = [event["progress"] for event in calls.follow("j")]
    assert entries == [0.1, 0.2, 0.3, 1.0]
    assert played.after == ["", "2", "2", "2"]


def test_a_job_that_failed_says_why() -> None:
    ended = {"id": "j", "state": "failed", "progress": 0.3, "error": PROBLEM}
    with of(Restarted(ended)) as calls, pytest.raises(RefusedError, match="Invalid input: seeds must be 5 or more"):
        list(calls.follow("j"))
    cancelled = Restarted({**ended, "state": "cancelled", "error": None})
    with of(cancelled) as calls, pytest.raises(RefusedError, match="the job was cancelled"):
        list(calls.follow("j"))


def test_a_service_that_stays_away_is_not_waited_for_for_ever() -> None:
    with of(away) as calls, pytest.raises(UnreachableError, match="it keeps job j: `steward job watch j`"):
        list(calls.follow("j"))


def test_what_is_refused_is_said_in_words() -> None:
    def refusing(request: httpx.Request) -> httpx.Response:
        plain = request.url.path == "/plain"
        return httpx.Response(502, text="<html>") if plain else httpx.Response(422, json=PROBLEM)

    with of(refusing) as calls:
        with pytest.raises(RefusedError, match="seeds must be 5 or more"):
            calls.call("POST", "/evaluations", json={})
        with pytest.raises(RefusedError, match="status 502"):
            calls.download("/plain")
        with pytest.raises(RefusedError, match="seeds"):
            list(calls.follow("j"))
    with of(away) as calls, pytest.raises(UnreachableError, match="http://there"):
        calls.call("GET", "/jobs")


def test_words_about_headers_are_not_passed_on() -> None:
    def illegal(_request: httpx.Request) -> httpx.Response:
        raise httpx.LocalProtocolError("Illegal header value b'Bearer stw_key'")

    with of(illegal) as calls, pytest.raises(UnreachableError, match="the request can't be sent") as error:
        calls.call("GET", "/jobs")
    assert "stw_key" not in str(error.value)


@pytest.mark.parametrize(
    "url", ["http://me:secret@host:x", "http://me:secret/more@host:1", "http://secret@[::1", "http://a:secret @host:y"]
)
def test_no_message_has_a_password(url: str) -> None:
    with pytest.raises(UnreachableError, match="is not the address of a service, such as http:") as error:
        Service(url)
    assert "secret" not in str(error.value)
    assert "host" in str(error.value) or "::1" in str(error.value)


def test_what_is_no_problem_is_quoted_with_its_status() -> None:
    answer = httpx.Response(404, json={"detail": "d" * 900})
    with of(lambda _request: answer) as calls, pytest.raises(RefusedError, match="status 404: ") as error:
        calls.call("GET", "/jobs")
    assert error.value.status == 404
    assert len(error.value.problem["detail"]) == 200


def test_an_answer_that_cannot_be_decoded_is_none() -> None:
    def garbled(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-encoding": "gzip"}, stream=httpx.ByteStream(b"no gzip"))

    with of(garbled) as calls, pytest.raises(UnreachableError, match="no answer from http://there"):
        calls.call("GET", "/jobs")


def test_a_redirect_is_named() -> None:
    moved = httpx.Response(308, headers={"location": "https://me:secret@there/"})
    with of(lambda _request: moved) as calls, pytest.raises(UnreachableError, match='redirects to "https://there/"'):
        calls.send("GET", "/jobs")


def test_the_bar_shows_texts_as_they_are() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    events = [{"state": "running", "progress": 0.5}, {"state": "succeeded", "progress": 1.0}]
    last = train.follow(console, "[red]title", events, lambda event: f"[bold]{event['state']}")
    assert isinstance(console.file, io.StringIO)
    assert last["progress"] == 1.0
    assert "[bold]succeeded" in console.file.getvalue()
    assert "[red]title" in console.file.getvalue()
