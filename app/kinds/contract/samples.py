"""The contract of sample codecs, and tables of rows."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.charts.figures import Figure, Ranked, ranking
from app.kinds.contract.inputs import FieldIssue, InvalidInput, Reader, Sample, plain, printable

# Rows of a table from outside, many at a time: what is in their columns, and what is wrong with it.
#
# Cells of CSV are text, values of JSON are of any type; where nothing stands there is None or an empty text.


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
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def take(self, places: Sequence[int]) -> Rows:
        """The rows at some places, in that order."""
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


# The contract of a sample codec: how the executions of workloads of one kind are read, kept, told and handed out.
#
# Storing, counting, listing and paging are the same for all kinds and stand in ``app.samples``. A codec is made of a
# workload's layout.


FILE: Mapping[str, Any] = {"type": "string", "format": "binary"}  # generated clients send it as it is


class Stored(Protocol):
    """An execution as it is kept."""

    @property
    def name(self) -> str:
        """The caller's identifier, or the run's."""
        ...

    @property
    def source(self) -> str:
        """Where it is from: `upload` or `run`."""
        ...

    @property
    def iterations(self) -> int:
        """How many it has."""
        ...

    @property
    def data(self) -> bytes:
        """What it says, as ``Sample.data``."""
        ...

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """What lists tell of it, as ``Sample.summary``."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was stored."""
        ...


class ExecutionBase(BaseModel):
    """A stored execution; a kind's own model adds what it tells of one, and its discriminator ``kind``."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    seconds: float = Field(description="Sum of `iteration_seconds`; for a trace, of run times.")
    created_at: datetime


class Format(NamedTuple):
    """How bodies of one media type are read.

    Attributes:
        reader: reads a body for a codec; it is given the name that the caller has for what is in it, or None.
        limit: which of the service's limits holds for the unpacked body.
        lines: which limit holds for a line; None where the body is not read by lines.
        named: whether a body holds one execution, which the caller may name.
        schema, example: of a body, for the documentation.
        skipping: as ``reader``, but leaves out lines that can't be right and tells so; None where none can be left out.
    """

    reader: Callable[[Any, str | None], Reader]
    limit: Literal["upload", "json", "trace"]
    lines: Literal["short", "json"] | None
    named: bool = False
    schema: Mapping[str, Any] = FILE
    example: Any = None
    skipping: Callable[[Any, str | None], Reader] | None = None

    def place(self, number: int) -> str:
        """JSON pointer to an execution of a body by ``Refused.line``, which counts lines, or samples of a document."""
        return f"/samples/{number - 1}" if self.limit == "json" else f"/lines/{number}"


class Export(NamedTuple):
    """How executions are written in one media type.

    Attributes:
        head: what stands before all of them.
        body: pieces of text of one.
        single: whether a document holds one execution only.
    """

    head: Callable[[Any], str]
    body: Callable[[Any, Stored], Iterator[str]]
    single: bool = False


class SampleCodec(Protocol):
    """How the executions of workloads of one kind are read, kept, told and handed out."""

    formats: ClassVar[Mapping[str, Format]]
    exports: ClassVar[Mapping[str, Export]]
    tells_reports: ClassVar[bool]
    """Whether ``read`` can tell all that an execution says, for which it needs its data."""

    def __init__(self, layout: Any) -> None: ...

    def unpacked(self, data: bytes) -> Any:
        """What stored bytes say, in the kind's own terms."""
        ...

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What lists tell of stored bytes, JSON: fields of the kind's own model. ``Sample.summary`` is the same."""
        ...

    def read(self, execution: Stored, *, reports: bool) -> ExecutionBase:
        """An execution as answered, of the kind's own model; ``reports``: with all that it says, where that is told."""
        ...

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """What a run reported, in order, as an execution named by it; None where that is nothing to learn from.

        Args:
            run: name of the execution.
            reports: one per iteration, without gaps.
            first: the iteration of the first report.
        """
        ...


# Cells of CSV that no spreadsheet takes for formulas, and that read back as what they were.
#
# A spreadsheet calculates a cell that begins with one of ``= + - @``, a tab or the end of a line, and some cut lines at
# ``;`` instead of ``,``. Where text begins so, at its own beginning or behind a ``;``, an apostrophe is put before it,
# and one more where apostrophes stand there already; reading takes one away. Numbers stay as they are.


_PLAIN = re.compile(r"(^|;)('*[=+\-@\t\r\n])")
_ESCAPED = re.compile(r"(^|;)'('*[=+\-@\t\r\n])")


def escaped(text: str) -> str:
    """Text as it is written to a cell."""
    return _PLAIN.sub(r"\1'\2", text)


def unescaped(cell: str) -> str:
    """Undo ``escaped``; text that needs no escaping is taken as it is."""
    return _ESCAPED.sub(r"\1\2", cell) if "'" in cell else cell


def line(cells: Iterable[object]) -> str:
    """A line of cells, quoted where need be, with its end; text is escaped."""
    out = io.StringIO()
    csv.writer(out).writerow([escaped(one) if isinstance(one, str) else one for one in cells])  # quotes \r and \n, too
    return out.getvalue().removesuffix("\r\n") + "\n"


# How far families of domain models were off on executions that were held out, as a model's report tells it.


TOLD = "Mean absolute error on executions that were held out, as a share; the coloured one was chosen."


def errors(report: Mapping[str, Any]) -> Iterator[Figure]:
    """A bar for each candidate of which the error is known, the best first; nothing where there is none."""
    candidates: Sequence[Any] = report.get("candidates", ())
    found = sorted((one for one in candidates if one.get("mape") is not None), key=lambda one: one["mape"])
    if found:
        chosen = report.get("family")
        ranked = [
            Ranked(
                one["family"].replace("_", " "), one["mape"], chosen=bool(one.get("chosen", one["family"] == chosen))
            )
            for one in found
        ]
        yield ranking("Error of what was fitted, beside alternatives", "error", ranked, TOLD, ".1~%")
