"""A training loop goes on whatever becomes of the network, and what it reports is stored once, in order."""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from steward_client import CarriedRun, Policy, Retry, Run, StewardError, Unreachable

from tests.clients.cutting import CUTS, STALLED, Cutting, Plan
from tests.clients.test_policy import drive, policy
from tests.clients.test_run import Clock, Flaky, Handler, clock, forwarded, metrics, refused, through, workload

__all__ = ["clock", "forwarded", "policy", "workload"]

ITERATIONS, WAIT_SECONDS, TRAINING_SECONDS = 4, 5.0, 60.0
REQUESTS = ITERATIONS + 2  # the start, the reports, the end
BLINK, LONG = 1, 9  # attempts; the second lasts longer than a report waits


def stored(client: TestClient, run: str) -> list[tuple[int, float]]:
    items = client.get(f"/runs/{run}/iterations?limit=500").json()["items"]
    return [(item["iteration"], item["report"]["metrics"]["iteration_seconds"]) for item in items]


def cut_at(numbers: range, cut: str) -> Plan:
    return lambda number: cut if number in numbers else None


def train(run: Run, clock: Clock, iterations: int = ITERATIONS) -> None:
    """The loop: it must never be held up for long, nor meet an exception."""
    for iteration in range(run.iteration, iterations):
        began = clock.now
        allocation = run.report(iteration, run.allocation, metrics(20.0 + iteration), {"batch": 128})
        assert clock.now - began <= WAIT_SECONDS
        assert set(allocation) == {"gpus"}
        assert run.decision.reason.text
        assert run.iteration == iteration + 1
        clock.now += TRAINING_SECONDS


def reported(iterations: int = ITERATIONS) -> list[tuple[int, float]]:
    return [(iteration, 20.0 + iteration) for iteration in range(iterations)]


@pytest.mark.parametrize("attempts", [BLINK, LONG])
@pytest.mark.parametrize("cut", CUTS)
def test_a_network_that_is_cut_at_any_step_costs_nothing(
    client: TestClient, workload: str, forwarded: Handler, cut: str, attempts: int
) -> None:
    for step in range(REQUESTS):
        clock = Clock()
        with Cutting(forwarded, cut_at(range(step, step + attempts), cut)).running() as service:
            with Run(service.url, workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run:
                train(run, clock)
            assert run.unsent == {}
            assert len(service.requests) == REQUESTS + attempts
        assert stored(client, run.id) == reported()
        last, *others = client.get("/runs").json()["items"]
        assert (last["id"], last["state"], last["iterations"]) == (run.id, "finished", ITERATIONS)
        assert len(others) == step  # none was started twice


@pytest.mark.parametrize("cut", CUTS)
def test_a_service_that_is_away_until_the_end_gets_everything_then(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock, cut: str, caplog: pytest.LogCaptureFixture
) -> None:
    away = [False]
    with (
        Cutting(forwarded, lambda _: cut if away[0] else None).running() as service,
        Run(service.url, workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run,
    ):
        allocation, away[0] = run.allocation, True
        with caplog.at_level(logging.INFO, "steward_client"):
            train(run, clock, 20)
            assert run.allocation == allocation
            assert [*run.unsent] == list(range(20))
            away[0] = False
            run.flush()
        assert len([record for record in caplog.records if record.name == "steward_client"]) == 2  # it goes, and comes
        assert run.decision.iteration == 20
    assert stored(client, run.id) == reported(20)


def test_waiting_takes_no_more_than_a_tenth_of_the_loop(workload: str, forwarded: Handler, clock: Clock) -> None:
    attempts = [0]

    def void(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            return forwarded(request)
        attempts[0] += 1
        clock.now += 1.0
        raise httpx.ConnectTimeout("timed out", request=request)

    run = Run(through(void), workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS).start()
    began = clock.now
    for iteration in range(1_000):
        run.report(iteration, run.allocation, metrics(20), {"batch": 128})
        clock.now += 0.5
    passed = clock.now - began
    assert attempts[0] > 20  # it is asked all the while
    assert passed - 500.0 <= 0.1 * passed + WAIT_SECONDS


def test_what_the_service_asks_for_is_waited_for_without_the_caller(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock
) -> None:
    flaky = Flaky(forwarded, "pass", "busy")
    run = Run(through(flaky), workload, retry=clock.retry(), wait_seconds=WAIT_SECONDS).start()
    for iteration, unsent in enumerate([1, 2, 0]):
        run.report(iteration, run.allocation, metrics(20.0 + iteration), {"batch": 128})
        assert len(run.unsent) == unsent
        clock.now += 3.6  # 7 s were asked for
    assert clock.pauses == []
    assert stored(client, run.id) == reported(3)


def test_a_service_that_never_answers_holds_nobody_up(client: TestClient, workload: str, forwarded: Handler) -> None:
    stalled = [False]
    with Cutting(forwarded, lambda _: STALLED if stalled[0] else None).running() as service:
        retry = Retry(patience_seconds=60)
        with Run(service.url, workload, retry=retry, wait_seconds=0.3) as run:
            stalled[0], began = True, time.monotonic()
            for iteration in range(5):
                run.report(iteration, run.allocation, metrics(20.0 + iteration), {"batch": 128})
            assert time.monotonic() - began < 15  # 30 s is how long a call waits for itself
            stalled[0] = False
    assert stored(client, run.id) == reported(5)


def test_an_end_that_nobody_hears_is_logged(
    workload: str, forwarded: Handler, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    with Run(through(Flaky(forwarded, "pass", *["refuse"] * 200)), workload, retry=clock.retry()) as run:
        train(run, clock)
    assert [*run.unsent] == list(range(ITERATIONS))
    assert "iterations 0-3 not reported" in caplog.text
    with pytest.raises(Unreachable):
        run.finish()


def test_a_refused_report_that_was_kept_is_named_and_may_be_corrected(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock
) -> None:
    flaky = Flaky(forwarded, "pass", "busy")
    retry = clock.retry()
    with Run(through(flaky), workload, retry=retry, wait_seconds=WAIT_SECONDS, refusals="raise") as run:
        run.report(0, {"gpus": 99}, metrics(20), {"batch": 128})
        clock.now += TRAINING_SECONDS
        with pytest.raises(StewardError, match="gpus") as raised:
            run.report(1, run.allocation, metrics(21), {"batch": 128})
        assert raised.value.__notes__ == ["refused: the report of iteration 0"]
        assert [*run.unsent] == [1]
        run.report(0, run.allocation, metrics(20), {"batch": 128})
        assert run.unsent == {}
    assert stored(client, run.id) == reported(2)


def test_refusals_may_be_logged_and_what_was_refused_is_tried_again(
    client: TestClient, workload: str, forwarded: Handler, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    refusing = [False]

    def door(request: httpx.Request) -> httpx.Response:
        return refused(401, "unknown key") if refusing[0] else forwarded(request)

    with Run(through(door), workload, retry=clock.retry(), refusals="log") as run:
        refusing[0] = True
        train(run, clock, 2)
        assert caplog.text.count("unknown key") == 1
        run.report(2, run.allocation, metrics(float("nan")), {"batch": 128})
        assert "iteration 2 is not reported" in caplog.text  # for want of a number; the next one takes its place
        refusing[0] = False
        clock.now += TRAINING_SECONDS
        train(run, clock)
    assert stored(client, run.id) == reported()


def test_a_loop_that_counts_by_itself_loses_the_report_without_a_number_alone(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    with Run(through(forwarded), workload) as run:
        for iteration, seconds in enumerate((20, 21, math.nan, 22, math.inf, 23)):
            run.report(iteration, run.allocation, metrics(seconds), {"batch": 128})
        assert run.unsent == {}
    assert stored(client, run.id) == reported(4)


def test_what_json_has_no_number_for_is_the_callers_fault(workload: str, forwarded: Handler) -> None:
    with Run(through(forwarded), workload, refusals="raise") as run:
        with pytest.raises(ValueError, match="JSON"):
            run.report(0, run.allocation, metrics(float("nan")), {"batch": 128})
        assert run.unsent == {}


@pytest.mark.parametrize(("values", "match"), [({"wait_seconds": 0}, "wait_seconds"), ({"refusals": "no"}, "refusals")])
def test_what_a_run_is_given_is_checked(values: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Run("http://127.0.0.1:9", "w", **values)


@pytest.mark.parametrize("cut", CUTS)
def test_a_carried_policy_decides_whatever_becomes_of_the_network(
    client: TestClient, forwarded: Handler, policy: Policy, clock: Clock, cut: str
) -> None:
    away = [False]
    with (
        Cutting(forwarded, lambda _: cut if away[0] else None).running() as service,
        CarriedRun(service.url, policy, retry=clock.retry(), wait_seconds=WAIT_SECONDS) as run,
    ):
        away[0] = True
        assert drive(run, 40)
        began = clock.now
        assert not run.report()
        assert clock.now - began <= WAIT_SECONDS
        away[0] = False
        clock.now += TRAINING_SECONDS
        assert run.report()
    items = client.get(f"/runs/{run.id}/iterations?limit=500").json()["items"]
    assert sum(len(item["report"]["arrived"]) for item in items) == 40
