"""Answers of somebody between client and service: a loop goes on, and each report is stored once, in order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client import Retry, Run
from steward_client.iterative import Refusals

from tests.clients.cutting import BEFORE, DRIP, DRIPPING_HEAD, Cutting
from tests.clients.test_away import TRAINING_SECONDS, WAIT_SECONDS, reported, stored, train
from tests.clients.test_run import Clock, Handler, clock, forwarded, metrics, state_of, through, workload
from tests.clients.test_training import PATIENT, nobody_launches, reports

__all__ = ["clock", "forwarded", "nobody_launches", "workload"]

REFUSALS = (400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 413, 414, 415, 421, 422, 425, 429, 431, 451)
BROKEN = (500, 501, 502, 503, 504, 511, 520)
REDIRECTIONS = (301, 302, 303, 307, 308)
HTML, TEXT = {"content-type": "text/html"}, {"content-type": "text/plain"}
JSON, PROBLEM = {"content-type": "application/json"}, {"content-type": "application/problem+json"}
SUCCESS: dict[str, Any] = {"id": "r", "state": "running", "decision": {}}


def answers() -> Iterator[tuple[str, httpx.Response]]:
    """What proxies, portals and other services answer, by name."""
    for status in (*REFUSALS, *BROKEN):
        yield f"{status} page", httpx.Response(status, headers=HTML, content=b"<h1>no</h1>")
        yield f"{status} empty", httpx.Response(status)
        yield f"{status} text", httpx.Response(status, headers=TEXT, content=b"denied")
        yield f"{status} JSON", httpx.Response(status, headers=JSON, content=b'{"message": "denied"}')
        foreign = json.dumps({"type": "about:blank", "title": "no", "status": status}).encode()
        yield f"{status} another's problem", httpx.Response(status, headers=PROBLEM, content=foreign)
    for status in REDIRECTIONS:
        yield f"{status} redirection", httpx.Response(status, headers={"location": "http://127.0.0.1:9/login"})
        yield f"{status} to nowhere", httpx.Response(status, headers={"location": "http://[", **HTML})
    for status in (200, 201, 202, 203, 204, 226):
        yield f"{status} empty", httpx.Response(status)
    for kind in (HTML, TEXT, JSON, {}):
        for body in (b"<p>log in</p>", b"null", b"[]", b"7", b"{}", b"\xff\xfe", b"[" * 100_000, b'{"a": ' * 5_000):
            name = f"200 {kind.get('content-type', 'untyped')} {body[:12]!r}"
            yield name, httpx.Response(200, headers=kind, content=body)
    yield "200 another's success", httpx.Response(200, headers=JSON, content=json.dumps(SUCCESS).encode())
    yield "200 not what it says", httpx.Response(200, headers={"content-encoding": "gzip", **JSON}, content=b"")


ANSWERS = dict(answers())
FAMILIES = sorted({name.split()[0] for name in ANSWERS})
FEW = ("204", "302", "401", "404", "422", "429", "503")


@pytest.mark.parametrize("refusals", ["log", "raise"])
@pytest.mark.parametrize(
    "status", [status if status in FEW else pytest.param(status, marks=pytest.mark.slow) for status in FAMILIES]
)
def test_a_loop_goes_on_while_somebody_else_answers(
    client: TestClient, workload: str, forwarded: Handler, status: str, refusals: Refusals
) -> None:
    answering: list[httpx.Response] = []
    result = {}
    with Cutting(forwarded, lambda _: answering[0] if answering else None).running() as service:
        for name, answer in ANSWERS.items():
            if name.split()[0] != status:
                continue
            clock = Clock()
            patient = clock.retry(patience_seconds=600.0)
            with Run(service.url, workload, retry=patient, wait_seconds=WAIT_SECONDS, refusals=refusals) as run:
                train(run, clock, 2)
                allocation, answering[:] = run.allocation, [answer]
                train(run, clock, 4)
                assert run.allocation == allocation, name
                answering.clear()
                clock.now += TRAINING_SECONDS
                train(run, clock, 6)
                assert run.refused is None
            result[name] = stored(client, run.id)
    assert result == dict.fromkeys(result, reported(6))
    assert result


def test_an_epoch_loop_goes_on_while_somebody_else_answers(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    answering: list[httpx.Response] = []
    retry = Retry(patience_seconds=PATIENT, first_seconds=0.01, longest_seconds=0.02)
    with Cutting(forwarded, lambda _: answering[0] if answering else None).running() as service:
        for name in ("401 page", "404 JSON", "422 empty", "302 redirection", "200 text/html b'<p>log in</p'"):
            with steward.run(workload, service.url, retry=retry) as run:
                for epoch in run.epochs(30):
                    answering[:] = [ANSWERS[name]] if 5 <= epoch.number < 25 else []
                    epoch.describe(batch=1 + epoch.number)
                    time.sleep(0.002)
            assert [one["features"]["batch"] for one in reports(client, run.id)] == [*range(1, 31)], name
            assert state_of(client, run.id)["state"] == "finished"


@pytest.mark.parametrize("kind", [DRIP, DRIPPING_HEAD])
def test_an_answer_that_drips_holds_nobody_up(client: TestClient, workload: str, forwarded: Handler, kind: str) -> None:
    dripping = [False]
    with (
        Cutting(forwarded, lambda _: kind if dripping[0] else None).running() as service,
        Run(service.url, workload, retry=Retry(patience_seconds=PATIENT), wait_seconds=0.3) as run,
    ):
        dripping[0], began = True, time.monotonic()
        for iteration in range(5):
            run.report(iteration, run.allocation, metrics(20.0 + iteration), {"batch": 128})
        assert time.monotonic() - began < PATIENT / 2
        assert len(run.unsent) == 5
        dripping[0] = False
    assert stored(client, run.id) == reported(5)


@pytest.mark.parametrize("retry_after", ["999999999", "9" * 400, "Fri, 31 Dec 9999 23:59:59 GMT", "soon", "-7", ""])
def test_an_answer_may_not_put_off_the_next_attempt_for_long(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock, retry_after: str
) -> None:
    far = httpx.Response(503, headers={"retry-after": retry_after, "date": "Sun, 06 Nov 1994 08:49:37 GMT"})
    answering = [True]
    with (
        Cutting(forwarded, lambda _: far if answering and answering.pop() else None).running() as service,
        Run(service.url, workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run,  # the start waits
    ):
        assert clock.now <= 30.0
        answering.append(True)
        train(run, clock, 3)
        assert run.unsent == {}
    assert stored(client, run.id) == reported(3)


def test_what_the_service_itself_refuses_is_said_once_and_ends_no_loop(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with Run(through(forwarded), workload, retry=clock.retry()) as run:
        train(run, clock, 2)
        allocation = run.allocation
        for iteration in (2, 3, 4):
            assert run.report(iteration, {"gpus": 99}, metrics(20.0 + iteration), {"batch": 128}) == allocation
            clock.now += TRAINING_SECONDS
        assert run.refused is not None
        assert run.refused.errors[0]["pointer"] == "/allocation/gpus"
        (output,) = [record.getMessage() for record in caplog.records]
        assert "iteration 2 is refused: 422" in output
        for iteration in (2, 3, 4):  # corrected
            run.report(iteration, allocation, metrics(20.0 + iteration), {"batch": 128})
            clock.now += TRAINING_SECONDS
        assert run.refused is None
    assert stored(client, run.id) == reported(5)


def test_decisions_of_another_run_and_of_another_iteration_are_no_answers(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock
) -> None:
    wrong: list[Callable[[dict[str, Any]], dict[str, Any]]] = []

    def mixed_up(request: httpx.Request) -> httpx.Response:
        answer = forwarded(request)
        if wrong and request.method == "PUT":
            return httpx.Response(200, json=wrong[0](answer.json()))
        return answer

    changes: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
        lambda reported: reported | {"run": "another"},
        lambda reported: reported | {"iteration": reported["iteration"] + 1},
        lambda reported: reported | {"allocation": {"gpus": "many"}},
        lambda reported: reported | {"allocation": {"gpus": None}},
        lambda reported: reported | {"allocation": {}},
        lambda reported: {**reported, "iteration": None},
    ]
    for change in changes:
        with Run(through(mixed_up), workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run:
            train(run, clock, 2)
            allocation, wrong[:] = run.allocation, [change]
            train(run, clock, 4)
            assert run.allocation == allocation
            wrong.clear()
            clock.now += TRAINING_SECONDS
            train(run, clock, 6)
        assert stored(client, run.id) == reported(6)


def test_members_that_a_client_does_not_know_are_passed_over(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock
) -> None:
    def newer(request: httpx.Request) -> httpx.Response:
        answer = forwarded(request)
        return httpx.Response(answer.status_code, json={**answer.json(), "of a later version": [{"a": 1}]})

    with Run(through(newer), workload, retry=clock.retry()) as run:
        train(run, clock, 3)
    assert stored(client, run.id) == reported(3)


def test_an_answer_of_any_size_is_no_reason_to_end(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steward_client.attempt.LARGEST_BYTES", 1 << 16)
    large = httpx.Response(200, headers=JSON, content=b'{"a": "' + b"x" * (1 << 17) + b'"}')
    answering: list[httpx.Response] = []
    with (
        Cutting(forwarded, lambda _: answering[0] if answering else None).running() as service,
        Run(service.url, workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run,
    ):
        answering.append(large)
        train(run, clock, 2)
        assert len(run.unsent) == 2
        answering.clear()
        clock.now += TRAINING_SECONDS
    assert stored(client, run.id) == reported(2)


def test_no_more_is_kept_than_a_workload_has_iterations(
    client: TestClient,
    workload: str,
    forwarded: Handler,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("steward_client.iterative.MOST_KEPT", 5)
    away = [False]
    with (
        Cutting(forwarded, lambda _: BEFORE if away[0] else None).running() as service,
        Run(service.url, workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run,
    ):
        away[0] = True
        for iteration in range(9):
            run.report(iteration, run.allocation, metrics(20.0 + iteration), {"batch": 128})
            clock.now += TRAINING_SECONDS
        assert [*run.unsent] == [*range(5)]
        away[0] = False
        clock.now += TRAINING_SECONDS
    assert caplog.text.count("5 reports wait to be sent; iteration 5 and those after it are not reported") == 1
    assert stored(client, run.id) == reported(5)
