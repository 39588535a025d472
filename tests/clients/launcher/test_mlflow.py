"""Decisions in MLflow's own store: two runs of two workloads, a training that continues its run, a server that is away.

With a store in SQLite: MLflow's store in files is in maintenance mode.
"""

from __future__ import annotations

import shutil
import sys
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from steward_client import mlflow_sink
from steward_client.launcher.main import main
from steward_client.mlflow_sink import MlflowSink, MlflowUnavailable

from tests.clients.launcher.serving import SPEC, script
from tests.clients.launcher.test_launch import Serve, folder, forwarded, run, runs, serve

if find_spec("mlflow") is None:
    pytest.skip("mlflow is not installed", allow_module_level=True)
__all__ = ["folder", "forwarded", "serve"]
pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow's own, of its libraries
mlflow: Any = None  # imported by the process alone that comes to these tests: that takes seconds

LOGS = """
import time, mlflow
with mlflow.start_run():
    for n in range(4):
        time.sleep(0.2)
        mlflow.log_metric("loss", 1 / (n + 1), step=n)
        print(f"epoch {n}: loss=1", flush=True)
"""
SLEEPS = "import time\nfor n in range(4):\n    time.sleep(0.2)\n    print(f'epoch {n}: loss=1', flush=True)\n"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without runs."""
    global mlflow
    mlflow = import_module("mlflow")
    path = tmp_path_factory.mktemp("mlflow") / "mlflow.db"
    mlflow.MlflowClient(f"sqlite:///{path}").search_experiments()
    return path


@pytest.fixture
def uri(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store of this test."""
    for name in ("MLFLOW_RUN_ID", "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(mlflow_sink, "OPEN_SECONDS", 120.0)  # MLflow is imported, and makes its tables
    return f"sqlite:///{shutil.copy(tables, tmp_path)}"


def stored(uri: str) -> dict[str, Any]:
    """MLflow's runs by the workload in their tags."""
    client = mlflow.MlflowClient(uri)
    every = [one.experiment_id for one in client.search_experiments()]
    return {one.data.tags.get("steward.workload", ""): one for one in client.search_runs(every)}


@pytest.mark.slow
def test_two_runs_log_decisions_reports_and_outcomes_to_the_run_that_the_training_continues(
    serve: Serve, client: TestClient, folder: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.post("/workloads", json=SPEC | {"name": "other"}).status_code == 201
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "steward")
    url, command = serve().url, [sys.executable, script(folder, LOGS)]
    assert run(url, "--mlflow", uri, "--deadline", "60s", "--", *command) == 0
    assert main(["--workload", "other", "--url", url, "--mlflow", uri, "--deadline", "60s", "--", *command]) == 0
    result, ours = stored(uri), {one["workload"]: one for one in runs(client)}
    assert set(result) == set(ours) == {"busy", "other"}
    for name, one in result.items():
        assert one.info.status == "FINISHED"
        assert one.data.tags["steward.run"] == ours[name]["id"]
        assert one.data.tags["steward.outcome"] == ours[name]["outcome"] == "met"
        assert one.data.tags["steward.decision.reason"] == ours[name]["decision"]["reason"]["text"]
        assert one.data.metrics["loss"] == 0.25  # the training's own
        history = mlflow.MlflowClient(uri).get_metric_history(one.info.run_id, "steward/allocation/cpu")
        items = client.get(f"/runs/{ours[name]['id']}/iterations").json()["items"]
        decided = {item["decision"]["iteration"]: item["decision"]["allocation"]["cpu"] for item in items}
        assert len(decided) == 3
        logged = {point.step: point.value for point in history}
        assert {step: logged[step] for step in decided} == decided
        measured = mlflow.MlflowClient(uri).get_metric_history(one.info.run_id, "steward/measured/iteration_seconds")
        assert [point.step for point in measured] == [item["iteration"] for item in items]
        assert [point.value for point in measured] == pytest.approx(
            [item["report"]["metrics"]["iteration_seconds"] for item in items]
        )


def test_a_run_that_the_caller_names_is_logged_to_and_left_open(
    serve: Serve, folder: Path, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = mlflow.MlflowClient(uri)
    ids = [theirs.create_run("0").info.run_id for _ in range(2)]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.setenv("MLFLOW_RUN_ID", ids[1])
    assert run(serve().url, "--mlflow", "--", sys.executable, script(folder, SLEEPS)) == 0
    first, second = (theirs.get_run(one) for one in ids)
    assert (first.data.metrics, second.info.status) == ({}, "RUNNING")
    assert second.data.tags["steward.workload"] == "busy"


def test_a_command_runs_without_mlflow_that_is_away_before_or_afterwards(
    serve: Serve,
    client: TestClient,
    folder: Path,
    uri: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url, command = serve().url, [sys.executable, script(folder, SLEEPS)]
    assert run(url, "--mlflow", "--", *command) == 0
    assert "decisions are not logged to MLflow: no tracking URI is given" in capfd.readouterr().err
    monkeypatch.setattr(mlflow_sink, "OPEN_SECONDS", 1.0)
    monkeypatch.setattr(mlflow_sink, "CLOSE_SECONDS", 1.0)
    assert run(url, "--mlflow", "http://127.0.0.1:9", "--", *command) == 0
    assert "http://127.0.0.1:9 doesn't respond within 1 s" in capfd.readouterr().err
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(mlflow_sink, "OPEN_SECONDS", 120.0)

    def away(*_: object, **__: object) -> None:
        raise ConnectionError("no route to MLflow")

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", away)
    assert run(url, "--mlflow", uri, "--", *command) == 0
    output = capfd.readouterr().err
    assert output.count("ConnectionError: no route to MLflow; the run goes on") == 1
    assert "mlflow: " in output
    assert "calls were lost" in output
    assert [one["state"] for one in runs(client)] == ["finished"] * 3


def test_savings_that_were_not_measured_are_left_out(uri: str) -> None:
    known, unknown = {"saved": {"value": 2.0}}, {"saved": None, "unmeasured": "no iteration ran at it"}
    for name, largest in (("one", known), ("two", unknown)):
        savings = {"cost": 3.0, "largest": largest, "best_fixed": unknown}
        ended: Any = SimpleNamespace(id=name, iteration=4, outcome="met", outcome_reason="", savings=savings)
        sink = MlflowSink(uri, name=name)
        sink.ended(ended, "finished")
        sink.close()
        run_read = mlflow.MlflowClient(uri).get_run(sink.run_id)
        saved = {"steward/saved/largest": 2.0} if largest is known else {}
        assert (run_read.info.status, run_read.data.metrics) == ("FINISHED", {"steward/cost": 3.0, **saved})


def test_a_command_that_cannot_be_started_has_a_failed_run(serve: Serve, folder: Path, uri: str) -> None:
    (folder / "plain").write_text("")
    assert run(serve().url, "--mlflow", uri, "--", str(folder / "plain")) == 127
    assert stored(uri)["busy"].info.status == "FAILED"


def test_a_store_that_hangs_delays_nothing(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_sink, "CLOSE_SECONDS", 0.5)
    monkeypatch.setattr(mlflow_sink, "MOST_WAITING", 5)
    sink = MlflowSink(uri)
    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", lambda *_, **__: time.sleep(60))
    begun = time.monotonic()
    for number in range(20):
        sink.reported(number, {"iteration_seconds": 1.0})
    sink.close()
    assert time.monotonic() - begun < 10
    assert sink.lost >= 14
    with pytest.raises(MlflowUnavailable, match="nonesuch"):
        MlflowSink(uri, run_id="nonesuch")
