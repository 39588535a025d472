"""Lists as tables of a line a row: what is too long is cut, never wrapped; and what is typed again is not cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from app.charts.text import UNITS, moment, number, percent
from app.cli.nouns.contract import Column
from app.cli.remote.service import Json


def table(columns: Sequence[Column], items: Iterable[Json], now: datetime | None = None) -> Table:
    """A row for each item; columns that are empty throughout are left out, but for those that name it."""
    rows = [[cell(column, item, now or datetime.now(UTC)) for column in columns] for item in items]
    kept = [index for index, column in enumerate(columns) if column.whole or any(row[index] for row in rows)]
    made = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index in kept:
        longest = max([len(columns[index].head), *(len(row[index]) for row in rows)])
        made.add_column(columns[index].head, no_wrap=columns[index].whole, overflow="ellipsis")
        made.columns[-1].min_width = longest if columns[index].whole else None
    for row in rows:
        made.add_row(*(Text(row[index], no_wrap=True, overflow="ellipsis") for index in kept))
    return made


def cell(column: Column, item: Json, now: datetime) -> str:
    """A value as it is written."""
    value = _member(item, column.member.split("."))
    if value is None or value == []:
        return ""
    match column.form:
        case "age":
            return lasting((now - datetime.fromisoformat(value)).total_seconds())
        case "moment":
            return moment(datetime.fromisoformat(value))
        case "lasting":
            return lasting(value)
        case "share":
            return percent(value, 0)
        case "flag":
            return "yes" if value else ""
        case _:
            return plain(value)


def plain(value: Any) -> str:
    """A scalar, or several, on one line."""
    if isinstance(value, list):
        return ", ".join(map(plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number(value, 6) if isinstance(value, float) else " ".join(str(value).split())


def lasting(seconds: float) -> str:
    """``3 min``: whole numbers of the largest unit."""
    size, unit = next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])
    return f"{max(seconds, 0) // size:.0f} {unit}"


def _member(item: Any, place: Sequence[str]) -> Any:
    """What lies at a place; of a list, of each that it holds."""
    for index, name in enumerate(place):
        if isinstance(item, list):
            return [found for one in item if (found := _member(one, place[index:])) is not None]
        item = item.get(name) if isinstance(item, dict) else None
    return item
