"""Lists of runs are read by indices alone, however much is stored: no table is walked through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event

from app.database.engine import Database
from app.decisions import service as decisions
from app.drift import repository as drift
from app.evaluations import service as evaluations
from app.http.pagination import PageRequest
from app.jobs import service as jobs
from app.runs import service
from app.runs.outcomes import Staleness
from tests.app.runs.reporting import TENANT, register, start

PAGE, RULE = PageRequest(50), Staleness(10, 300)
READS: dict[str, Callable[[Database, str], object]] = {
    "runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE),
    "runs of a workload": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, "resnet18"),
    "running runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, None, "running"),
    "missed runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, None, None, ["missed"]),
    "stale runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, None, None, ["stale"]),
    "missed or failed runs": lambda database, _: service.list_runs(
        database, TENANT, PAGE, RULE, None, None, ["missed", "failed"]
    ),
    "runs of a search": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, search="resnet18"),
    "runs by an id": lambda database, run: service.list_runs(database, TENANT, PAGE, RULE, search=run[:8]),
    "longest runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, sort="-duration"),
    "gravest runs": lambda database, _: service.list_runs(database, TENANT, PAGE, RULE, sort="-outcome"),
    "iterations": lambda database, run: service.iterations(database, TENANT, run, PAGE),
    "a run": lambda database, run: service.get(database, TENANT, run, RULE),
    "a decision": lambda database, run: decisions.of_run(database, TENANT, run, None),
    "jobs": lambda database, _: jobs.list_jobs(database, TENANT, PAGE),
    "evaluations": lambda database, _: evaluations.list_evaluations(database, TENANT, PAGE, None),
    "drifted runs": lambda database, run: _drifted(database, run),
}
LISTS = (
    "longest runs",
    "gravest runs",
    "runs of a search",
    "runs",
    "runs of a workload",
    "running runs",
    "missed runs",
    "stale runs",
)
LEFT_OUT = {**dict.fromkeys(LISTS, "state_vector"), "jobs": "jobs.request"}
"""Columns that may be large, and that a list doesn't tell."""
LARGE = ("SCAN iterations", "SCAN runs", "SCAN jobs", "SCAN evaluations", "SCAN job_events", "SCAN executions")


def _drifted(database: Database, run: str) -> None:
    with database.reading() as session:
        drift.runs(session, run, drifted=True)


@pytest.mark.parametrize("read", READS)
def test_no_large_table_is_walked_through(database: Database, read: str) -> None:
    register(database)
    run = start(database)
    requests: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def _note(_: Connection, __: object, statement: str, parameters: Any, *___: object) -> None:
        if statement.startswith("SELECT"):
            requests.append((statement, parameters))

    READS[read](database, run)
    assert read not in LEFT_OUT or not any(LEFT_OUT[read] in statement for statement, _ in requests)
    event.remove(database.engine, "before_cursor_execute", _note)
    assert requests
    with database.engine.connect() as connection:
        for statement, parameters in requests:
            plan = [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)]
            assert [step for step in plan if step.startswith(LARGE) and "INDEX" not in step] == [], statement
            assert not any("TEMP B-TREE" in step for step in plan), statement
