"""Rows of measured batches and of requests against the workload's layout, many at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.text import plain, printable
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.content import MICRO, Floats, LogWriter, Packed, Requests, packed

REQUEST, BATCHES = ("time", "user", "size"), ("variant", "batch", "server", "cores", "seconds")
COLUMNS = (*REQUEST, *BATCHES)
LISTED = 20
LATEST = 4e9  # seconds, in 2096; until then a float of seconds tells microseconds apart
LARGEST = 1e9
MOST_REQUESTS, MOST_BATCHES = 20_000_000, 1_000_000
NOTHING = (None, "")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)(?:Z|\+00:00)?", re.ASCII)
_EPOCH = np.datetime64(0, "us")
FORMS = "must say time (user, size) of a request, or variant, batch, server, cores and seconds of a measured batch"
TIME = "must be seconds, 0 or more, or a time as 2026-01-31T12:00:00Z"


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


class Collector:
    """Collects what an execution says; holds its requests compressed.

    Args:
        layout: of the workload.
    """

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._users = {name: i for i, name in enumerate(layout.users)}
        self._variants = {name: i for i, name in enumerate(layout.variants)}
        self._servers = {name: i for i, name in enumerate(layout.servers)}
        self._cores = np.array([server.cores for server in layout.spec.servers])
        self._log = LogWriter()
        self._batches: list[Floats] = []

    def take(self, rows: Rows) -> None:
        """Some more rows, in order.

        Raises:
            InvalidInput: what is wrong with the first of those that are.
        """
        if "seconds" not in rows.columns:
            self._take_requests(rows)
        elif "time" not in rows.columns:
            self._take_batches(rows)
        else:
            timed = [value not in NOTHING for value in rows.columns["time"]]
            _refuse(_mixed(rows, timed))
            self._take_requests(rows.take([i for i, one in enumerate(timed) if one]))
            self._take_batches(rows.take([i for i, one in enumerate(timed) if not one]))

    def finish(self) -> Packed:
        """All of it as it is stored.

        Raises:
            InvalidInput: there is nothing.
        """
        if not self.count:
            raise refused([FieldIssue("", f"holds nothing: each row {FORMS}", None)])
        return packed(self._table(), self._log)

    @property
    def count(self) -> int:
        """Requests and batches."""
        return self._log.count + sum(map(len, self._batches))

    def _table(self) -> Floats:
        return np.concatenate(self._batches) if self._batches else np.zeros((0, len(BATCHES)))

    def _take_requests(self, rows: Rows) -> None:
        if not rows.rows:
            return
        time = _times(rows.given("time"))
        users, size = rows.given("user"), _numbers(rows.given("size"))
        user = _named(users, self._users)
        before = np.concatenate([[self._log.last], time[:-1]])
        silent = np.array([value in NOTHING for value in rows.given("size")])
        _refuse(
            [
                *_issues(rows, "time", (time < 0) | (time > LATEST * MICRO), TIME),
                *_issues(rows, "time", (time >= 0) & (time < before), "must not be less than the time before it"),
                *_issues(rows, "user", user < 0, _known("user", self._layout.users)),
                *_issues(rows, "size", ~((size >= 0) & (size <= LARGEST) | silent), f"must be 0 to {LARGEST:g}"),
            ]
        )
        if self._log.count + rows.rows > MOST_REQUESTS:
            message = f"an execution holds at most {MOST_REQUESTS:,} requests: upload the log in parts"
            raise refused([FieldIssue(rows.where(MOST_REQUESTS - self._log.count), message, None)])
        self._log.add(Requests(time, user.astype(np.uint8), size))

    def _take_batches(self, rows: Rows) -> None:
        if not rows.rows:
            return
        names = rows.given("variant"), rows.given("server")
        variant, server = _named(names[0], self._variants), _named(names[1], self._servers)
        batch, seconds = _numbers(rows.given("batch")), _numbers(rows.given("seconds"))
        silent = np.array([value in NOTHING for value in rows.given("cores")])
        cores = np.where(silent, self._cores[server], _numbers(rows.given("cores")))
        most = int(self._layout.batches[-1])
        whole = (batch >= 1) & (batch <= most) & (batch == np.rint(batch))
        _refuse(
            [
                *_issues(rows, "variant", variant < 0, _known("variant", self._layout.variants)),
                *_issues(rows, "server", server < 0, _known("server class", self._layout.servers)),
                *_issues(rows, "batch", ~whole, f"must be a whole number, 1 to {most}, the largest batch size"),
                *_issues(rows, "cores", ~((cores > 0) & (cores <= LARGEST)), "must be greater than 0"),
                *_issues(rows, "seconds", ~((seconds > 0) & (seconds <= LARGEST)), "must be greater than 0"),
            ]
        )
        if self.count + rows.rows - self._log.count > MOST_BATCHES:
            raise refused([FieldIssue(rows.where(0), f"an execution holds at most {MOST_BATCHES:,} batches", None)])
        self._batches.append(np.stack([variant, batch, server, cores, seconds], axis=1).astype(np.float64))


def refused(issues: Sequence[FieldIssue]) -> InvalidInput:
    """What is wrong with a body, the first ``LISTED`` of all, told with lines or pointers."""
    said = "; ".join(f"{issue.pointer or 'body'}: {issue.message}" for issue in issues[:3])
    return InvalidInput(issues[:LISTED], printable(said) + ("; and more" if len(issues) > 3 else ""))


def _refuse(issues: Sequence[FieldIssue]) -> None:
    if issues:
        raise refused(issues)


def _issues(rows: Rows, field: str, wrong: NDArray[np.bool_], message: str) -> list[FieldIssue]:
    values = rows.given(field)
    return [
        FieldIssue(f"{rows.where(row)}/{field}", message, _shown(values[row]))
        for row in np.flatnonzero(wrong)[:LISTED].tolist()
    ]


def _mixed(rows: Rows, timed: Sequence[bool]) -> list[FieldIssue]:
    """Rows that say something of both forms."""
    found = []
    for name, values in rows.columns.items():
        other = name in BATCHES
        places = [i for i, one in enumerate(timed) if one == other and values[i] not in NOTHING][:LISTED]
        found += [FieldIssue(f"{rows.where(i)}/{name}", FORMS, _shown(values[i])) for i in places]
    return found


def _known(what: str, names: Sequence[str]) -> str:
    return f"unknown {what}; known: {', '.join(names)}"


def _named(values: Sequence[Any], known: Mapping[str, int]) -> NDArray[np.int64]:
    """Positions, −1 for what is unknown; where there is only one it need not be said, [n]."""
    positions: dict[Any, int] = dict(known)
    if len(known) == 1:
        positions |= dict.fromkeys(NOTHING, 0)
    return np.array([positions.get(value, -1) for value in values], np.int64)


def _times(values: Sequence[Any]) -> NDArray[np.int64]:
    """Microseconds, −1 for what is no time, [n]."""
    if any(isinstance(value, str) and ":" in value for value in values[:1]):
        return np.array(_timestamps(values), np.int64)
    seconds = _numbers(values)
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


def _numbers(values: Sequence[Any]) -> Floats:
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


def _shown(value: Any) -> Any:
    return printable(value[:80]) if isinstance(value, str) else plain(value)
