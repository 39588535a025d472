"""Alembic's environment: every migration runs in one transaction, under a lock, on SQLite and PostgreSQL."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection, text

import app.database.tables  # noqa: F401  (fills the metadata)
from app.database.base import Base
from app.database.engine import Database
from app.settings import get_settings

MIGRATION_LOCK = 5_834_611_207


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=connection.dialect.name == "sqlite",
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":  # several processes may start at once
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        context.run_migrations()


def main() -> None:
    """Connect and migrate."""
    url = context.config.attributes.get("url") or get_settings().database_url
    database = Database(url)
    try:
        with database.engine.connect() as connection:
            _run(connection)
    finally:
        database.dispose()


main()
