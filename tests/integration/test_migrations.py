from __future__ import annotations

import os
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from app.database.base import Base
from app.database.engine import Database
from migrations.runner import HERE, check, configuration, downgrade, upgrade
from tests.filled import contents, fill, missing


def test_migrations_build_every_table_of_the_code(any_database: Database) -> None:
    names = set(inspect(any_database.engine).get_table_names())
    assert names == set(Base.metadata.tables) | {"alembic_version"}


def test_code_and_migrations_agree(any_database: Database) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    check(url)  # raises on a difference
    with any_database.engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == ["2026_11_27_outcomes"]


def test_migrations_go_down_and_up_again(any_database: Database) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    downgrade(url)
    assert inspect(any_database.engine).get_table_names() == ["alembic_version"]
    upgrade(url)
    assert len(inspect(any_database.engine).get_table_names()) == len(Base.metadata.tables) + 1


def test_executions_are_kept_when_they_get_summaries(any_database: Database) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    downgrade(url, "2026_11_21_shadows")
    with any_database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO workloads (tenant, id, created_at, name, kind, spec, spec_version, revision) "
                "VALUES ('default', 'w', '2026-11-21 00:00:00', 'w', 'iterative', '{}', 1, 1)"
            )
        )
        connection.execute(
            text(
                "INSERT INTO executions "
                "(tenant, id, created_at, workload_id, name, digest, iterations, data, source) "
                "VALUES ('default', 'e', '2026-11-21 00:00:00', 'w', 'e', 'd', 1, '', 'upload')"
            )
        )
    upgrade(url)
    with any_database.engine.connect() as connection:
        assert connection.execute(text("SELECT id, summary FROM executions")).all() == [("e", None)]


def test_runs_that_ended_before_get_an_outcome_and_cancelled_ones_have_failed_after_a_way_back(
    any_database: Database,
) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    downgrade(url, "2026_11_26_revoked")
    with any_database.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO workloads (tenant, id, created_at, name, kind, spec, spec_version, revision) "
                "VALUES ('default', 'w', '2026-11-21 00:00:00', 'w', 'iterative', '{}', 1, 1)"
            )
        )
        for state in ("running", "finished", "failed"):
            connection.execute(
                text(
                    "INSERT INTO runs (tenant, id, created_at, workload_id, spec_version, state, start, state_vector, "
                    "next_iteration, decision, drifts) "
                    "VALUES ('default', :state, '2026-11-21 00:00:00', 'w', 1, :state, '{}', '[]', 0, '{}', 0)"
                ),
                {"state": state},
            )
    upgrade(url)
    with any_database.engine.begin() as connection:
        found = connection.execute(text("SELECT id, outcome, outcome_reason FROM runs ORDER BY id")).all()
        assert found == [
            ("failed", "failed", None),
            ("finished", "completed", "it ended before outcomes were recorded"),
            ("running", "on_track", None),
        ]
        connection.execute(text("UPDATE runs SET state = 'cancelled', outcome = 'cancelled' WHERE id = 'running'"))
    downgrade(url, "2026_11_26_revoked")
    with any_database.engine.connect() as connection:
        states = connection.execute(text("SELECT id, state FROM runs ORDER BY id")).all()
        assert states == [("failed", "failed"), ("finished", "finished"), ("running", "failed")]
    upgrade(url)


def test_every_table_carries_its_tenant() -> None:
    assert [name for name, table in Base.metadata.tables.items() if "tenant" not in table.columns] == []


EVERY_TABLE_ANEW = """
from alembic import op
from sqlalchemy import inspect, text

revision, down_revision, branch_labels, depends_on = "anew", "{head}", None, None


def upgrade():
    for name in inspect(op.get_bind()).get_table_names():
        if name != "alembic_version":
            with op.batch_alter_table(name, recreate="always"):
                pass
    op.execute(text("{statement}"))
"""


def upgrade_anew(database: Database, folder: Path, statement: str = "SELECT 1") -> None:
    """Make every table anew, then execute a statement."""
    settings = configuration(database.url.render_as_string(hide_password=False))
    head = ScriptDirectory.from_config(settings).get_current_head()
    (folder / "anew.py").write_text(EVERY_TABLE_ANEW.format(head=head, statement=statement))
    settings.set_main_option("version_locations", f"{HERE / 'versions'}{os.pathsep}{folder}")
    command.upgrade(settings, "anew")


def revision(database: Database) -> str | None:
    with database.engine.connect() as connection:
        return connection.scalar(text("SELECT version_num FROM alembic_version"))


def test_a_filled_database_loses_nothing_when_its_tables_are_made_anew(database: Database, tmp_path: Path) -> None:
    fill(database)
    before = contents(database)
    assert all(before.values())
    upgrade_anew(database, tmp_path)
    assert contents(database) == before
    assert revision(database) == "anew"
    with database.session() as session:  # foreign keys hold in the new tables
        session.execute(text("DELETE FROM workloads"))
    assert contents(database)["executions"] == []


def test_a_migration_that_leaves_rows_without_what_they_refer_to_changes_nothing(
    database: Database, tmp_path: Path
) -> None:
    fill(database)
    before, stood = contents(database), revision(database)
    with pytest.raises(RuntimeError, match="to workloads"):
        upgrade_anew(database, tmp_path, "DELETE FROM workloads")
    assert contents(database) == before
    assert revision(database) == stood


def revisions() -> list[str]:
    """Every revision but the newest, newest first."""
    scripts = ScriptDirectory.from_config(configuration("sqlite://"))
    return [script.revision for script in scripts.walk_revisions()][1:]


@pytest.mark.parametrize("older", revisions())
def test_a_database_filled_by_an_older_version_keeps_everything(any_database: Database, older: str) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    downgrade(url, older)
    fill(any_database)
    before = contents(any_database)
    upgrade(url)
    assert missing(before, contents(any_database)) == []
