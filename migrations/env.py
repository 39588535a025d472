"""Alembic's environment: every migration runs in one transaction, under a lock, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from alembic import context
from sqlalchemy import Connection, text

import app.database.tables  # noqa: F401  (fills the metadata)
from app.database.base import Base
from app.database.engine import Database
from app.settings import get_settings

MIGRATION_LOCK = 5_834_611_207


class BrokenReferences(RuntimeError):
    """After the migrations, rows refer to rows that are not there; nothing was changed."""


def _run(connection: Connection) -> None:
    sqlite = connection.dialect.name == "sqlite"
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_as_batch=sqlite,
        transactional_ddl=True,
        compare_type=True,
        compare_server_default=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":  # several processes may start at once
            connection.execute(text("SET LOCAL lock_timeout = 0"))  # another migration may take long
            connection.execute(text(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"))
        before = context.get_context().get_current_revision()
        context.run_migrations()
        if sqlite and context.get_context().get_current_revision() != before:  # it looks at every row
            _check_references(connection)


def _check_references(connection: Connection) -> None:
    counts = Counter((row.table, row.parent) for row in connection.execute(text("PRAGMA foreign_key_check")))
    if counts:
        sentence = ", ".join(f"{number} of {table} to {parent}" for (table, parent), number in counts.items())
        raise BrokenReferences(
            f"the migrations would leave rows that refer to nothing: {sentence}; nothing was changed"
        )


@contextmanager
def _without_foreign_keys(connection: Connection) -> Iterator[None]:
    """Context manager: disable SQLite's foreign keys, as replacing a table would delete rows that refer to it."""
    if connection.dialect.name != "sqlite":
        yield
        return
    cursor = connection.connection.cursor()  # the driver's: outside of any transaction, as these must be
    cursor.execute("PRAGMA foreign_keys=OFF")
    try:
        yield
    finally:
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()


def main() -> None:
    """Connect to the database and migrate it; raises BrokenReferences if rows would refer to missing rows."""
    url = context.config.attributes.get("url") or get_settings().database_url
    database = Database(url)
    try:
        with database.engine.connect() as connection, _without_foreign_keys(connection):
            _run(connection)
    finally:
        database.dispose()


main()
