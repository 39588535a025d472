"""Iterations in files: the launcher's file for reports, and log files that scripts write for themselves."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Iterable, Iterator
from math import isfinite
from pathlib import Path
from typing import Any

from .mark import Mark
from .output import COUNTERS, Lines, Matcher

MOST_BYTES = 1 << 20
Read = Callable[[str], Iterable[Mark]]


class Tail:
    """Finds marks in the lines appended to a file; a truncated or replaced file is read from its beginning.

    Args:
        path: the file, which need not exist yet.
        read: returns the marks in a line.
        skip: whether to ignore the present content.
    """

    def __init__(self, path: Path, read: Read, *, skip: bool = False) -> None:
        self.path, self._read = path, read
        self._marks: list[Mark] = []
        self._lines = Lines(self._line)
        self._at, self._file = 0, 0
        if skip and path.exists():
            known = path.stat()
            self._at, self._file = known.st_size, known.st_ino

    def marks(self) -> Iterator[Mark]:
        """Yield marks in the lines appended since the last call, in at most ``MOST_BYTES``; none while there is no
        file. Raises OSError if it can't be read."""
        try:
            known = self.path.stat()
        except FileNotFoundError:
            self._file = 0  # the next one may get the number of the one that is gone
            return
        if known.st_ino != self._file or known.st_size < self._at:
            self._at, self._file, self._lines = 0, known.st_ino, Lines(self._line)
        if known.st_size > self._at:
            with self.path.open("rb") as file:
                file.seek(self._at)
                piece = file.read(MOST_BYTES)
            self._at += len(piece)
            self._lines.feed(piece)
        marks, self._marks = self._marks, []
        yield from marks

    def _line(self, line: str, _: float, end: str) -> None:
        if end:
            self._marks += self._read(line)


def parse_marks(line: str) -> list[Mark]:
    """Marks in a line of ``STEWARD_ITERATIONS``, ``{"iteration": 7, "total": 90, "metrics": {…}}``; else []."""
    try:
        record = json.loads(line)
        number = record["iteration"]
        whole = isinstance(number, int) and not isinstance(number, bool)
        metrics, features = record.get("metrics") or {}, record.get("features") or {}
        total = record.get("total")
        counts = isinstance(total, int) and total > 0
        mark = Mark(time.monotonic(), number, total if counts else None, _finite(metrics), _finite(features))
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return [mark] if whole else []


class OwnFile:
    """Reads lines of a script's log file: JSON objects, a CSV table with a header, or else one iteration per line.

    Args:
        matcher: matcher of the user's pattern; None: the forms above are tried.
    """

    def __init__(self, matcher: Matcher | None = None) -> None:
        self._matcher, self._head = matcher, list[str]()

    def read(self, line: str) -> list[Mark]:
        """The marks in a line; empty if it has none."""
        if self._matcher is not None:
            return self._matcher.match(line)
        if line.lstrip().startswith("{"):
            return self._object(line)
        cells = next(csv.reader([line]))
        if not self._head and not any(_number(cell) is not None for cell in cells):
            self._head = [cell.strip() for cell in cells]
            return []
        values = zip(self._head, map(_number, cells), strict=False)
        return self._count_mark({name: value for name, value in values if value is not None})

    def _object(self, line: str) -> list[Mark]:
        try:
            body = json.loads(line)
        except ValueError:
            return []
        return self._count_mark(_finite(body))

    @staticmethod
    def _count_mark(values: dict[str, float]) -> list[Mark]:
        count = next((values[name] for name in values if name.lower() in COUNTERS), None)
        metrics = {name: value for name, value in values.items() if name.lower() not in COUNTERS}
        return [Mark(time.monotonic(), None if count is None else int(count), None, metrics)]


def _finite(values: Any) -> dict[str, float]:
    return {
        str(name): float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    }


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None
