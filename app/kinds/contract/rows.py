"""Rows of a table from outside, many at a time: what is in their columns, and what is wrong with it.

Cells of CSV are text, values of JSON are of any type; where nothing stands there is None or an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.text import plain, printable

Floats = NDArray[np.float64]
LISTED = 20
MICRO = 1_000_000
LATEST = 4e9  # seconds, in 2096; until then a float of seconds tells microseconds apart
NOTHING = (None, "")
TIME = f"must be seconds, 0 or more, at most {LATEST:g}, or a time as 2026-01-31T12:00:00Z"
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)
_EPOCH = np.datetime64(0, "us")


class Rows(NamedTuple):
    """Some rows of a body.

    Attributes:
        columns: cells or values by column, equally many; None or empty where nothing stands.
        where: pointer to a row, by its place among these.
    """

    columns: Mapping[str, Sequence[Any]]
    where: Callable[[int], str]

    @property
    def rows(self) -> int:
        """How many."""
        return len(next(iter(self.columns.values()), ()))

    def take(self, places: Sequence[int]) -> Rows:
        """Some of them."""
        columns = {name: [values[i] for i in places] for name, values in self.columns.items()}
        return Rows(columns, lambda row: self.where(places[row]))

    def given(self, name: str) -> Sequence[Any]:
        """A column; nothing in each row where there is none."""
        return self.columns.get(name) or [None] * self.rows

    def silent(self, name: str) -> NDArray[np.bool_]:
        """Where nothing stands in a column, [n]."""
        return np.array([value in NOTHING for value in self.given(name)], np.bool_)

    def issues(self, field: str, wrong: NDArray[np.bool_], message: str) -> list[FieldIssue]:
        """An issue for each of the first rows whose ``field`` is ``wrong`` [n]."""
        values = self.given(field)
        return [
            FieldIssue(f"{self.where(row)}/{field}", message, shown(values[row]))
            for row in np.flatnonzero(wrong)[:LISTED].tolist()
        ]


def refused(issues: Sequence[FieldIssue]) -> InvalidInput:
    """What is wrong with a body, the first ``LISTED`` of all, told with lines or pointers."""
    said = "; ".join(f"{issue.pointer or 'body'}: {issue.message}" for issue in issues[:3])
    return InvalidInput(issues[:LISTED], printable(said) + ("; and more" if len(issues) > 3 else ""))


def refuse(issues: Sequence[FieldIssue]) -> None:
    """Nothing, if there is no issue.

    Raises:
        InvalidInput: there is one.
    """
    if issues:
        raise refused(issues)


def known(what: str, names: Sequence[str]) -> str:
    """What is accepted where one of ``names`` must stand."""
    return f"unknown {what}; known: {', '.join(names)}"


def named(values: Sequence[Any], positions: Mapping[str, int]) -> NDArray[np.int64]:
    """Positions, −1 for what is unknown; where there is only one it need not be said, [n]."""
    found: dict[Any, int] = dict(positions)
    if len(positions) == 1:
        found |= dict.fromkeys(NOTHING, 0)
    return np.array([found.get(value, -1) for value in values], np.int64)


def times(values: Sequence[Any]) -> NDArray[np.int64]:
    """Microseconds, −1 for what is no time, [n]."""
    if any(isinstance(value, str) and ":" in value for value in values[:1]):
        return np.array(_timestamps(values), np.int64)
    seconds = numbers(values)
    return np.rint(np.where((seconds >= 0) & (seconds <= 2 * LATEST), seconds, -1 / MICRO) * MICRO).astype(np.int64)


def _timestamps(values: Sequence[Any]) -> NDArray[np.int64]:
    matches = [_TIMESTAMP.fullmatch(value) if isinstance(value, str) else None for value in values]
    texts = [match[1][:26] if match else "NaT" for match in matches]
    try:
        found = np.array(texts, "datetime64[us]")
    except ValueError:  # a month 13, for instance
        found = np.array([_date(text) for text in texts], "datetime64[us]")
    return np.where(np.isnat(found), -1, (found - _EPOCH).astype(np.int64))


def _date(text: str) -> np.datetime64:
    try:
        return np.datetime64(text, "us")
    except ValueError:
        return np.datetime64("NaT")


def numbers(values: Sequence[Any]) -> Floats:
    """Values or cells as numbers, NaN for what is none, [n]; Python's digit grouping (``1_000``) is none."""
    try:
        if not any(isinstance(value, str) and "_" in value for value in values):
            return np.array(values, np.float64)
    except ValueError:
        pass  # one at a time, to know which
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    try:
        return float("nan") if value is None or (isinstance(value, str) and "_" in value) else float(value)
    except ValueError:
        return float("nan")


def shown(value: Any) -> Any:
    """A value as an error tells it."""
    return printable(value[:80]) if isinstance(value, str) else plain(value)
