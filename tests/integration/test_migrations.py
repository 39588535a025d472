from __future__ import annotations

import os
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

from app.database.base import Base
from app.database.engine import Database
from migrations.runner import HERE, check, configuration
from tests.filled import contents, fill


def test_migrations_build_every_table_of_the_code(any_database: Database) -> None:
    names = set(inspect(any_database.engine).get_table_names())
    assert names == set(Base.metadata.tables) | {"alembic_version"}


def test_code_and_migrations_agree(any_database: Database) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    check(url)  # raises on a difference
    with any_database.engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == ["2026_11_28"]


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
