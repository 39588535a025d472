"""Samples as CSV, page by page: what is exported can be uploaded again."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from app.database.engine import Database
from app.database.tables import Execution
from app.pagination import PageRequest
from app.samples import service
from app.samples.check import Checker
from app.samples.formats.csv import column_names

PAGE = 100


def accepts_csv(accept: str) -> bool:
    """Whether an ``Accept`` header prefers ``text/csv`` to JSON; JSON where it names neither."""
    qualities = {"text/csv": 0.0, "application/json": 0.0}
    for part in accept.lower().split(","):
        name, *parameters = (piece.strip() for piece in part.split(";"))
        if name in qualities:
            qualities[name] = _quality(parameters)
    return qualities["text/csv"] > qualities["application/json"]


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q" and value.strip().replace(".", "", 1).isdigit():
            return float(value)
    return 1.0


def export(database: Database, tenant: str, name: str) -> Iterator[str]:
    """Header and rows of all executions; holds one page of them at a time."""
    found, checker = service.listed(database, tenant, name, PageRequest(PAGE))
    return _pages(database, tenant, name, found.rows, found.cursor, checker)


def _pages(
    database: Database, tenant: str, name: str, rows: list[Execution], cursor: str | None, checker: Checker
) -> Iterator[str]:
    yield ",".join(column_names(checker.layout)) + "\n"
    while True:
        yield "".join(_rows(execution, checker) for execution in rows)
        if cursor is None:
            return
        found, checker = service.listed(database, tenant, name, PageRequest(PAGE, cursor))
        rows, cursor = found.rows, found.cursor


def _rows(execution: Execution, checker: Checker) -> str:
    name = _cell(execution.name)
    data = service.array(execution, checker.columns)
    return "".join(f"{name},{','.join(map(_number, values))}\n" for values in data.tolist())


def _cell(text: str) -> str:
    """A cell, quoted where need be."""
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow([text])
    return out.getvalue()


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")
