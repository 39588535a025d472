"""A database with rows in every table, at whatever revision it stands: its tables are taken as they are found."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Column, Connection, Engine, MetaData, insert, select
from sqlalchemy.types import JSON, Boolean, DateTime, Float, Integer, LargeBinary

from app.database.engine import Database

ROWS = 3
UNTOUCHED = "alembic_version"
Contents = dict[str, list[dict[str, Any]]]


def _tables(engine: Engine | Connection) -> MetaData:
    metadata = MetaData()
    metadata.reflect(engine)
    return metadata


def fill(database: Database) -> None:
    """Put rows into every table, each referring to a row of every table that it can refer to."""
    with database.engine.begin() as connection:
        for table in _tables(connection).sorted_tables:
            if table.name != UNTOUCHED:
                rows = [{column.name: _value(column, number) for column in table.columns} for number in range(ROWS)]
                connection.execute(insert(table), rows)


def _value(column: Column[Any], number: int) -> Any:
    """The same for a key and for what refers to it: row n of a table refers to row n of another."""
    kind = column.type
    if isinstance(kind, Boolean):
        return bool(number % 2)
    if isinstance(kind, Integer | Float):
        return number + 1
    if isinstance(kind, DateTime):
        return datetime(2026, 1, 1, number, tzinfo=UTC)
    if isinstance(kind, LargeBinary):
        return bytes([number])
    if isinstance(kind, JSON):
        return {"row": number}
    return f"row-{number}"


def contents(database: Database) -> Contents:
    """All rows of all tables, by table."""
    with database.engine.connect() as connection:
        return {
            table.name: [dict(row) for row in connection.execute(select(table).order_by(*table.primary_key)).mappings()]
            for table in _tables(connection).sorted_tables
            if table.name != UNTOUCHED
        }
