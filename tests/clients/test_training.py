"""``steward.run``: a loop that waits for nobody, in both faces, and what becomes of its reports."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import steward_client as steward
from fastapi.testclient import TestClient

from tests.clients.cutting import BEFORE, Cutting
from tests.clients.test_run import Handler, clock, forwarded, state_of, through, workload

__all__ = ["clock", "forwarded", "workload"]
PATIENT = 60.0
LAUNCHED = ("STEWARD_ITERATIONS", "STEWARD_ALLOCATION", "STEWARD_RUN", "STEWARD_URL", "STEWARD_TOKEN")


@pytest.fixture(autouse=True)
def nobody_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in LAUNCHED:
        monkeypatch.delenv(name, raising=False)


def reports(client: TestClient, run: str) -> list[dict[str, Any]]:
    return [one["report"] for one in client.get(f"/runs/{run}/iterations").json()["items"]]


def train(run: steward.EpochRun, epochs: int = 3) -> list[steward.Epoch]:
    visited = []
    for epoch in run.epochs(epochs, wait_share=1e9):
        epoch.describe(batch=128)
        visited.append(epoch)
    return visited


async def train_awaited(run: steward.EpochRun, epochs: int = 3) -> list[steward.Epoch]:
    visited = []
    async for epoch in run.epochs(epochs, wait_share=1e9):
        epoch.describe(batch=128)
        visited.append(epoch)
    return visited


def check_trained(client: TestClient, run: steward.EpochRun, epoches: list[steward.Epoch]) -> None:
    state = state_of(client, run.id)
    assert (state["state"], state["iterations"]) == ("finished", 3)
    assert [epoch.number for epoch in epoches] == [0, 1, 2]
    for result, epoch in zip(reports(client, run.id), epoches, strict=True):
        assert result["allocation"] == epoch.allocation
        assert result["metrics"] == {"iteration_seconds": epoch.iteration_seconds}
    decisions = [one["decision"]["allocation"] for one in client.get(f"/runs/{run.id}/iterations").json()["items"]]
    assert [epoch.allocation for epoch in epoches[1:]] == decisions[:-1]


def test_a_loop_follows_decisions_and_is_reported(client: TestClient, workload: str, forwarded: Handler) -> None:
    with steward.run(workload, through(forwarded)) as run:
        observation = train(run)
    check_trained(client, run, observation)


def test_a_loop_may_be_awaited(client: TestClient, workload: str, forwarded: Handler) -> None:
    async def loop() -> tuple[steward.EpochRun, list[steward.Epoch]]:
        async with steward.run(workload, through(forwarded)) as run:
            return run, await train_awaited(run)

    check_trained(client, *asyncio.run(loop()))


def test_figures_that_the_workload_does_not_know_are_left_out(
    client: TestClient, workload: str, forwarded: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    with steward.run(workload, through(forwarded)) as run:
        for epoch in run.epochs(3):
            epoch.log(loss=0.3, iteration_seconds=20.0)
            epoch.describe(batch=64, depth=3)
            epoch.used(gpus=2)
    fields = {
        "kind": "iterative",
        "allocation": {"gpus": 2},
        "metrics": {"iteration_seconds": 20},
        "features": {"batch": 64},
    }
    assert reports(client, run.id) == [fields] * 3
    (record,) = caplog.records
    assert "features/depth" in record.message
    assert "metrics/loss" in record.message


def test_reporting_waits_for_nobody(client: TestClient, workload: str, forwarded: Handler) -> None:
    event = threading.Event()

    def slow(request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            event.wait(PATIENT)
        return forwarded(request)

    with steward.run(workload, through(slow)) as run:
        for epoch in run.epochs(20):
            epoch.describe(batch=128)
        assert not event.is_set()
        assert run.iteration == 20
        event.set()
    assert len(reports(client, run.id)) == 20


def test_an_outage_costs_no_report_and_no_waiting(client: TestClient, workload: str, forwarded: Handler) -> None:
    away = [False]
    retry = steward.Retry(patience_seconds=PATIENT, first_seconds=0.01, longest_seconds=0.02)
    with (
        Cutting(forwarded, lambda _: BEFORE if away[0] else None).running() as service,
        steward.run(workload, service.url, retry=retry) as run,
    ):
        for epoch in run.epochs(30):
            epoch.describe(batch=128)
            away[0] = 5 < epoch.number < 25
            time.sleep(0.002)
    assert [one["features"]["batch"] for one in reports(client, run.id)] == [128] * 30
    assert state_of(client, run.id)["state"] == "finished"


def test_a_refusal_is_raised_where_that_is_wanted(client: TestClient, workload: str, forwarded: Handler) -> None:
    run = steward.run(workload, through(forwarded), refusals="raise")
    with pytest.raises(steward.StewardError, match="/features/batch"), run:
        list(run.epochs(3, wait_share=1e9))
    assert state_of(client, run.id)["state"] == "failed"


def test_a_refusal_ends_no_loop_and_is_said_once(
    client: TestClient, workload: str, forwarded: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    with steward.run(workload, through(forwarded)) as run:
        assert len(list(run.epochs(3, wait_share=1e9))) == 3
        assert run.refused is not None
        assert "/features/batch" in str(run.refused)
    assert caplog.text.count("is refused: 422") == 1
    assert state_of(client, run.id)["iterations"] == 0


def test_a_refusal_of_the_last_report_is_raised_at_the_end(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    run = steward.run(workload, through(forwarded), refusals="raise")
    with pytest.raises(steward.StewardError, match="/features/batch"), run:
        list(run.epochs(1, wait_share=0))
    assert state_of(client, run.id)["iterations"] == 0


def test_an_exception_fails_the_run_with_all_that_was_reported(
    client: TestClient, workload: str, forwarded: Handler
) -> None:
    run = steward.run(workload, through(forwarded))

    def diverge() -> None:
        for epoch in run.epochs(3):
            epoch.describe(batch=128)
            _ = 1 / (1 - epoch.number)

    with pytest.raises(ZeroDivisionError), run:
        diverge()
    state = state_of(client, run.id)
    assert (state["state"], state["iterations"]) == ("failed", 1)
    assert state["outcome_reason"] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_diverges_ends_no_loop_and_is_left_out(
    client: TestClient, workload: str, forwarded: Handler, caplog: pytest.LogCaptureFixture, value: float
) -> None:
    with steward.run(workload, through(forwarded)) as run:
        for epoch in run.epochs(2):
            epoch.describe(batch=128)
            epoch.log(loss=value, iteration_seconds=2.0)
        with pytest.raises(ValueError, match="feature 'batch' must be a finite number"):
            epoch.describe(batch=value)
    assert caplog.text.count("metric 'loss' is") == 2
    assert [one["metrics"] for one in reports(client, run.id)] == [{"iteration_seconds": 2.0}] * 2


@pytest.mark.parametrize(("value", "error"), [("much", ValueError), (None, TypeError)])
def test_a_figure_that_is_no_number_is_named(
    workload: str, forwarded: Handler, value: Any, error: type[Exception]
) -> None:
    with steward.run(workload, through(forwarded)) as run:
        epoch = next(iter(run.epochs(1)))
        with pytest.raises(error, match="metric 'loss' must be a finite number"):
            epoch.log(loss=value)


def test_a_launchers_files_are_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines, decision = tmp_path / "lines", tmp_path / "decision.json"
    decision.write_text(json.dumps({"iteration": 7, "allocation": {"cpu": 200}}))
    monkeypatch.setenv("STEWARD_ITERATIONS", str(lines))
    monkeypatch.setenv("STEWARD_ALLOCATION", str(decision))
    with steward.run("of the launcher") as run:
        for epoch in run.epochs(9):
            assert epoch.allocation == {"cpu": 200 if epoch.number == 7 else 150}
            epoch.log(loss=0.25, iteration_seconds=2)
            decision.write_text(json.dumps({"iteration": 8, "allocation": {"cpu": 150}}))
    entries = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [line["iteration"] for line in entries] == [7, 8]
    assert entries[0]["metrics"] == {"loss": 0.25, "iteration_seconds": 2}


def test_a_launcher_that_is_gone_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEWARD_ITERATIONS", str(tmp_path / "no folder" / "lines"))
    monkeypatch.setenv("STEWARD_ALLOCATION", str(tmp_path / "nothing"))
    with steward.run("of the launcher") as run:
        assert [epoch.allocation for epoch in run.epochs(2)] == [{}, {}]


def test_a_launchers_run_is_taken_up_and_left_to_it(
    client: TestClient, workload: str, forwarded: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Cutting(forwarded, lambda _: None).running() as service:
        launcher = steward.Run(service.url, workload).start()
        launcher.report(0, launcher.allocation, {"iteration_seconds": 20}, {"batch": 128})
        monkeypatch.setenv("STEWARD_URL", service.url)
        monkeypatch.setenv("STEWARD_RUN", launcher.id)
        with steward.run(workload) as run:
            assert [epoch.number for epoch in train(run)] == [1, 2]
        launcher.close()
    state = state_of(client, launcher.id)
    assert (run.id, state["state"], state["iterations"]) == (launcher.id, "running", 3)
