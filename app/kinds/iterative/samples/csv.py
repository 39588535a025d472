"""CSV: a header, then one row per iteration; the rows of an execution stand together.

``execution,iteration,allocation.<resource>…,metric.<metric>…,feature.<feature>…``, columns in any order.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter

import numpy as np

from app.kinds.contract.csv_cells import unescaped
from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.reading import Refused, Sample, tabular
from app.kinds.contract.text import name_issue, printable
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.samples.check import Checker, Floats, iteration_issue, too_many_issue


def column_names(layout: Layout) -> list[str]:
    """The header of a layout's CSV."""
    return [
        "execution",
        "iteration",
        *(f"allocation.{name}" for name in layout.resources),
        *(f"metric.{name}" for name in layout.metrics),
        *(f"feature.{name}" for name in layout.features),
    ]


class CsvReader:
    """Reads executions of one layout; holds the rows of one execution at a time."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._limit = checker.layout.iterations
        self._names = column_names(checker.layout)

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Raises:
            InvalidInput: the header is missing, or names unknown, repeated or too few columns.
        """
        head, _, rest = next(blocks, b"").partition(b"\n")
        header = self._header(head)
        name_at, width = header.index("execution"), len(header)
        pick = itemgetter(*(header.index(name) for name in self._names[1:]))
        current: _Open | None = None
        for number, line in _numbered(chain([rest], blocks) if rest else blocks):
            cells = _quoted(line) if '"' in line else line.rstrip("\r").split(",")
            name = cells[name_at] if name_at < len(cells) else (current.cell if current else "")
            if current is None or name != current.cell:
                if current is not None:
                    yield self._close(current)
                current = _Open(name, number)
            if current.refused is not None:
                continue
            if len(cells) == width:
                current.take(number, pick(cells), self._limit)
            else:
                current.refuse(number, _width_issue(line, width, len(cells)))
        if current is not None:
            yield self._close(current)

    def _header(self, raw: bytes) -> list[str]:
        line = raw.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").decode("utf-8", "replace")
        names = [cell.strip() for cell in _quoted(line)]
        known = f"unknown column; known: {', '.join(self._names)}"
        unknown = [name for name in names if name not in self._names]
        twice = sorted({name for name, count in Counter(names).items() if count > 1} - set(unknown))
        errors = [
            *(_header_error(name, known, name) for name in unknown),
            *(_header_error(name, "column given twice", name) for name in twice),
            *(_header_error(name, "column is missing", None) for name in self._names if name not in names),
        ]
        if errors:
            raise InvalidInput(errors[:20], "; ".join(f"line 1, {e.pointer}: {e.message}" for e in errors[:20]))
        return names

    def _close(self, current: _Open) -> Sample | Refused:
        if current.refused is not None:
            return current.refused
        issue = name_issue(current.name)
        if issue is not None:
            return Refused(current.name, current.first, issue)
        try:
            data = _numbers(current.rows)
        except ValueError:
            row, issue = self._not_a_number(current.rows)
            return Refused(current.name, current.lines[row], issue)
        fault = self._checker.fault(data)
        if fault is not None:
            return Refused(current.name, current.lines[fault.row], fault.issue)
        return tabular(current.name, current.first, data, self._checker.summary(data))

    def _not_a_number(self, rows: list[tuple[str, ...]]) -> tuple[int, FieldIssue]:
        for index, cells in enumerate(rows):
            for pointer, cell in zip(self._checker.pointers, cells, strict=True):
                try:
                    _numbers([(cell,)])
                except ValueError:
                    return index, FieldIssue(pointer, "must be a number", printable(cell[:80]))
        return 0, iteration_issue(0, rows[0][0])


class _Open:
    """The execution whose rows are being read."""

    def __init__(self, cell: str, first: int) -> None:
        self.cell, self.name = cell, unescaped(cell)
        self.first = first
        self.rows: list[tuple[str, ...]] = []
        self.lines: list[int] = []
        self.refused: Refused | None = None

    def take(self, line: int, cells: tuple[str, ...], limit: int) -> None:
        """One more row; an execution that grows longer than ``limit`` rows is refused rather than held."""
        if len(self.rows) == limit:
            self.refuse(line, too_many_issue(limit, printable(cells[0][:80])))
        else:
            self.rows.append(cells)
            self.lines.append(line)

    def refuse(self, line: int, issue: FieldIssue) -> None:
        """Keep nothing of it."""
        self.refused = Refused(self.name, line, issue)
        self.rows, self.lines = [], []


def _numbers(rows: list[tuple[str, ...]]) -> Floats:
    """Cells as numbers, [n, C]; Python's digit grouping (``1_000``) isn't one."""
    width = len(rows[0])
    data = np.fromiter(map(float, chain.from_iterable(rows)), np.float64, len(rows) * width)
    if any("_" in cell for row in rows for cell in row):
        raise ValueError("underscore in a number")
    return data.reshape(-1, width)


def _numbered(blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines after the first that aren't blank, with their numbers."""
    before = 1
    for block in blocks:
        if not block.isspace():  # of which gzip packs a thousand lines in a byte
            for number, line in enumerate(block.decode("utf-8", "surrogateescape").split("\n"), start=before + 1):
                if line and line != "\r":
                    yield number, line
        before += block.count(b"\n") + 1


def _quoted(line: str) -> list[str]:
    """The cells of a line; none where its quotes don't match."""
    if line.count('"') % 2:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")], strict=True), [])
    except csv.Error:
        return []


def _width_issue(line: str, expected: int, given: int) -> FieldIssue:
    found = f"{given} cells" if given else "quotes that don't match"
    return FieldIssue("", f"malformed line: must have {expected} cells, has {found}", printable(line[:80]))


def _header_error(name: str, message: str, value: str | None) -> FieldIssue:
    return FieldIssue(f"/header/{printable(name[:80])}", message, None if value is None else printable(value[:80]))
