"""Reports that a process had taken and not sent when it was killed: the next one sends them, each once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client import spool
from steward_client.spool import Origin, Spool, StoredReport

from tests.clients.cutting import BEFORE, Cutting
from tests.clients.test_run import Handler, forwarded, refused, state_of, workload
from tests.clients.test_training import nobody_launches, reports

__all__ = ["forwarded", "nobody_launches", "workload"]

KILLED = """
import os, sys, time
import steward_client as steward
with steward.run(sys.argv[1]) as run:
    for epoch in run.epochs(6):
        epoch.describe(batch=128)
        epoch.log(iteration_seconds=1.0 + epoch.number)
        if epoch.number == 2:
            time.sleep(0.3)  # the first are sent
        if epoch.number == 5:
            os.kill(os.getpid(), 9)
"""


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "steward" / "runs"


@pytest.mark.parametrize("launched", [True, False], ids=["a launcher's run", "a run of its own"])
def test_a_killed_process_loses_no_report(
    client: TestClient, workload: str, forwarded: Handler, monkeypatch: pytest.MonkeyPatch, state: Path, launched: bool
) -> None:
    with Cutting(forwarded, lambda number: None if number < 3 else BEFORE).running() as service:
        monkeypatch.setenv("STEWARD_URL", service.url)
        if launched:
            monkeypatch.setenv("STEWARD_RUN", client.post("/runs", json={"workload": workload}).json()["id"])
        done = subprocess.run([sys.executable, "-c", KILLED, workload], env=os.environ, check=False)
        assert done.returncode == -9
        ((file),) = state.glob("*.ndjson")
        assert state_of(client, file.stem)["iterations"] < 5
        service.plan = lambda _: None
        with steward.run(workload) as run:
            for epoch in run.epochs(6):
                epoch.describe(batch=128)
                epoch.log(iteration_seconds=1.0 + epoch.number)
    result = state_of(client, file.stem)
    expected = ("running", 6) if launched else ("failed", 5)
    assert (result["state"], result["iterations"]) == expected
    seconds = [one["metrics"]["iteration_seconds"] for one in reports(client, file.stem)]
    assert seconds == [1.0 + number for number in range(expected[1])]
    assert (run.id == file.stem) is launched
    assert list(state.iterdir()) == []


@pytest.mark.parametrize("foreign", [False, True], ids=["the service's", "a proxy's"])
@pytest.mark.parametrize("status", [401, 403, 404])
def test_what_an_earlier_process_kept_is_given_up_only_if_its_run_is_no_more(
    client: TestClient, workload: str, forwarded: Handler, state: Path, status: int, foreign: bool
) -> None:
    answer = httpx.Response(status, text="no") if foreign else refused(status, "no")
    with Cutting(forwarded, lambda _: None).running() as service:
        address = steward.Run(service.url, workload).service
        spools = [Spool.of(Origin(run, workload, address, True)) for run in ("r1", "r2")]
        for one in spools:
            one.keep(StoredReport(0, {"gpus": 4.0}, {"iteration_seconds": 1.0}, {"batch": 1.0}))
            one.close()
        service.plan = lambda number: answer if "/runs/r" in service.requests[number] else None
        with steward.run(workload, service.url):
            pass
    request = {observation for observation in service.requests if observation.startswith("GET /runs/r")}
    assert request == ({"GET /runs/r1"} if foreign else {"GET /runs/r1", "GET /runs/r2"})  # else it is away for all
    left = [] if status == 404 and not foreign else ["r1", "r2"]
    assert sorted(file.stem for file in state.glob("*.ndjson")) == left


def test_what_cant_be_kept_is_told_and_nothing_fails(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    origin = Origin("r1", "w", "http://there", True)
    report = StoredReport(0, {"cpu": 1.0}, {"loss": 0.5}, {})
    first = Spool.of(origin)
    second = Spool.of(origin)  # another process, as far as the file can tell
    second.keep(report)
    assert "kept in memory alone" in caplog.text
    first.keep(report)

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("steward_client.journal.Journal.append", full)
    first.keep(report._replace(iteration=1))
    assert "No space left" in caplog.text
    (result,) = spool.left_behind("w", "http://there")
    assert result.stored_reports(0) == [report]
    assert list(spool.left_behind("w", "http://elsewhere")) == []
    result.close(done=True)
    assert list(state.iterdir()) == []
