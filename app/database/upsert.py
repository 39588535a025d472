"""INSERT … ON CONFLICT in the dialect at hand."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session


def insert(session: Session, table: Any) -> Any:
    """An INSERT that knows `on_conflict_do_nothing` and `on_conflict_do_update`, on SQLite and PostgreSQL."""
    dialect = session.get_bind().dialect.name
    return postgresql.insert(table) if dialect == "postgresql" else sqlite.insert(table)
