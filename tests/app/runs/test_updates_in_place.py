"""On PostgreSQL a run's next version stands in the page of the one before, and no index is written for it."""

import pytest
from msgspec import Raw
from sqlalchemy import text

from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Run, Workload
from app.runs import repository
from app.runs.repository import Entry

RUNS, REPORTS = 200, 4
LARGE = {"text": "x" * 1_000}


@pytest.mark.servers
def test_reports_update_runs_in_place(postgres_database: Database) -> None:
    with postgres_database.session() as session:
        workload = Workload(name="w", kind="iterative", spec={})
        session.add(workload)
        session.flush()
        given = {"spec_version": 1, "start": {}, "state_vector": [0.0], "decision": LARGE}
        runs = [Run(workload_id=workload.id, **given) for _ in range(RUNS)]
        session.add_all(runs)
    nothing, state, updated, in_place = Raw(b"{}"), Raw(b"[1.0, 2.0]"), 0, 0
    for iteration in range(REPORTS):
        entries = [Entry(run.id, iteration, run.tenant, "", nothing, nothing, state, b"packed") for run in runs]
        with postgres_database.session() as session:
            assert repository.append(session.connection(), entries, utc_now()) == {run.id for run in runs}
            found = session.execute(
                text("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'runs'")
            ).one()
            updated, in_place = updated + found.n_tup_upd, in_place + found.n_tup_hot_upd
    assert updated >= RUNS * REPORTS
    assert in_place > 0.9 * updated
