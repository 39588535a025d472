"""On PostgreSQL a run's next version stands in the page of the one before, and no index is written for it."""

import pytest
from sqlalchemy import text

from app.database.engine import Database
from app.database.tables import Run, Workload

RUNS, REPORTS = 200, 4
LARGE = {"text": "x" * 1_000}


@pytest.mark.servers
def test_reports_update_runs_in_place(postgres_database: Database) -> None:
    with postgres_database.session() as session:
        workload = Workload(name="w", kind="iterative", spec={})
        session.add(workload)
        session.flush()
        for _ in range(RUNS):
            given = {"spec_version": 1, "start": {}, "state_vector": [0.0], "decision": LARGE}
            session.add(Run(workload_id=workload.id, **given))
    updated = in_place = 0
    for _ in range(REPORTS):
        with postgres_database.session() as session:
            session.execute(text("UPDATE runs SET next_iteration = next_iteration + 1, state_vector = '[1.0, 2.0]'"))
            found = session.execute(
                text("SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_xact_user_tables WHERE relname = 'runs'")
            ).one()
            updated, in_place = updated + found.n_tup_upd, in_place + found.n_tup_hot_upd
    assert updated >= RUNS * REPORTS
    assert in_place > 0.9 * updated
