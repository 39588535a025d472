from __future__ import annotations

from sqlalchemy import inspect, text

from app.database.base import Base
from app.database.engine import Database
from migrations.runner import check, downgrade, upgrade


def test_migrations_build_every_table_of_the_code(any_database: Database) -> None:
    names = set(inspect(any_database.engine).get_table_names())
    assert names == set(Base.metadata.tables) | {"alembic_version"}


def test_code_and_migrations_agree(any_database: Database) -> None:
    url = any_database.url.render_as_string(hide_password=False)
    check(url)  # raises on a difference
    with any_database.engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == ["2026_11_22_summaries"]


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


def test_every_table_carries_its_tenant() -> None:
    assert [name for name, table in Base.metadata.tables.items() if "tenant" not in table.columns] == []
