"""Reports that a process had taken and not sent when it was killed: the next one sends them, each once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import steward_client as steward
from fastapi.testclient import TestClient
from steward_client import spool
from steward_client.spool import Kept, Origin, Spool

from tests.clients.cutting import BEFORE, Cutting
from tests.clients.test_run import Handler, forwarded, state_of, workload
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
    found = state_of(client, file.stem)
    expected = ("running", 6) if launched else ("failed", 5)
    assert (found["state"], found["iterations"]) == expected
    seconds = [one["metrics"]["iteration_seconds"] for one in reports(client, file.stem)]
    assert seconds == [1.0 + number for number in range(expected[1])]
    assert (run.id == file.stem) is launched
    assert list(state.iterdir()) == []


def test_what_cant_be_kept_is_told_and_nothing_fails(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    origin = Origin("r1", "w", "http://there", True)
    report = Kept(0, {"cpu": 1.0}, {"loss": 0.5}, {})
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
    (found,) = spool.left_behind("w", "http://there")
    assert found.kept(0) == [report]
    assert list(spool.left_behind("w", "http://elsewhere")) == []
    found.close(done=True)
    assert list(state.iterdir()) == []
