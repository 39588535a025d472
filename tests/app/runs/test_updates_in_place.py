"""On PostgreSQL a run's next version stands in the page of the one before, and no index is written for it; it is found
by its key, however few runs there were when that was planned.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from msgspec import Raw
from sqlalchemy import Connection, text

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Run, Workload
from app.runs import repository
from app.runs.repository import Entry
from tests.clean_databases import TEMPLATE
from tests.servers import PostgresServer

RUNS, REPORTS = 200, 4
FEW = 40
LARGE = {"text": "x" * 1_000}


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """URL of a database that no test has used: plans depend on its statistics."""
    name = f"test_{uuid4().hex}"
    postgres.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
    yield postgres.url(name)
    postgres.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _runs(database: Database, number: int) -> list[Run]:
    with database.session() as session:
        workload = Workload(name="w", kind="iterative", spec={})
        session.add(workload)
        session.flush()
        values = {"spec_version": 1, "start": {}, "state_vector": [0.0], "decision": LARGE}
        runs = [Run(workload_id=workload.id, **values) for _ in range(number)]
        session.add_all(runs)
    return runs


@pytest.mark.servers
def test_reports_update_runs_in_place(postgres_database: Database) -> None:
    runs = _runs(postgres_database, RUNS)
    state, updated, in_place = Raw(b"[1.0, 2.0]"), 0, 0
    for iteration in range(REPORTS):
        entries = [Entry(run.id, iteration, run.tenant, "", state, b"packed") for run in runs]
        with postgres_database.session() as session:
            assert repository.append(_driver(session.connection()), entries, utc_now()) == {run.id for run in runs}
            row = session.execute(
                text("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'runs'")
            ).one()
            updated, in_place = updated + row.n_tup_upd, in_place + row.n_tup_hot_upd
    assert updated >= RUNS * REPORTS
    assert in_place > 0.9 * updated


@pytest.mark.servers
@pytest.mark.parametrize("analysed", [False, True])
def test_runs_are_found_by_their_key(postgres_database: Database, analysed: bool) -> None:
    runs = _runs(postgres_database, FEW)
    entries = [Entry(run.id, 0, run.tenant, "", Raw(b"[1.0]"), b"packed") for run in runs]
    with postgres_database.engine.connect() as connection:
        messages: list[str] = []
        driver = _driver(connection)
        driver.add_notice_handler(lambda notice: messages.append(notice.message_primary))
        if analysed:
            connection.exec_driver_sql("ANALYZE runs")
        connection.exec_driver_sql("LOAD 'auto_explain'")
        connection.exec_driver_sql("SET auto_explain.log_min_duration = 0")
        connection.exec_driver_sql("SET plan_cache_mode = force_generic_plan")
        connection.exec_driver_sql("SET client_min_messages = log")
        driver.prepare_threshold = 0  # so that it is planned for any number of reports, as it is after some
        assert repository.append(driver, entries, utc_now()) == {run.id for run in runs}
    plan = next(text for text in messages if "Insert on iterations" in text)
    assert "Index Scan using pk_runs on runs" in plan
    assert "Seq Scan" not in plan
    assert "Bitmap" not in plan
