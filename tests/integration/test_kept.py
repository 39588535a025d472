"""A real service that keeps things for a while: its worker archives and deletes beside the reports that come."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from pyarrow import parquet
from sqlalchemy import update

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Run
from tests.conftest import StartSteward
from tests.integration.caller import SPEC, WORKLOAD
from tests.integration.conftest import Call
from tests.servers import wait_until

REPORT = {"allocation": {"executors": 8}, "metrics": {"iteration_seconds": 3.0}}


def printed(data: Path) -> str:
    command = [sys.executable, "-m", "app.cli", "db", "prune", "--dry-run", "--data", str(data)]
    environment = {**os.environ, "STEWARD_RETENTION_ITERATIONS_DAYS": "30"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


@pytest.mark.slow
def test_a_worker_deletes_what_is_too_old_while_reports_come(steward_factory: StartSteward, call: Call) -> None:
    server = steward_factory(retention_iterations_days="30", prune_seconds="0.2", sweep_seconds="0.2")
    caller = call(server)
    caller.post("/workloads", json={**SPEC, "iterations": 100_000})
    live, ended = (str(caller.post("/runs", json={"workload": WORKLOAD})["id"]) for _ in range(2))

    def report(run: str, number: int) -> None:
        assert caller.http.put(f"/runs/{run}/iterations/{number}", json=REPORT).status_code == 201

    for number in range(12):
        report(ended, number)
    assert caller.http.patch(f"/runs/{ended}", json={"state": "finished"}).status_code == 200
    assert printed(server.data_dir) == "nothing would be deleted\n"
    database = Database(server.database_url)
    try:
        with database.session() as session:
            session.execute(update(Run).where(Run.id == ended).values(finished_at=utc_now() - timedelta(days=40)))
        reported = 0

        def pruned() -> bool:
            nonlocal reported
            report(live, reported)
            reported += 1
            return len(caller.get(f"/runs/{ended}/iterations")["items"]) == 1

        wait_until(pruned, 120, "the worker to delete what is old")
    finally:
        database.dispose()
    assert len(caller.get(f"/runs/{live}/iterations?limit=500")["items"]) == min(reported, 500)
    files = list((server.data_dir / "archive" / "iterations").rglob("*.parquet"))
    assert sorted(row["iteration"] for file in files for row in parquet.read_table(file).to_pylist()) == list(range(11))
    assert caller.get(f"/runs/{ended}")["iterations"] == 12
