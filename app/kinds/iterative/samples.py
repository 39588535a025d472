"""Samples of kind `iterative`: an execution is a table of iterations.

A row has an iteration number and numbers by name in three parts (``PARTS``). JSON: ``{"iteration": 0, "allocation":
{…}, "metrics": {…}, "features": {…}}``. CSV: a header, ``execution,iteration,allocation.<resource>…,
metric.<metric>…,feature.<feature>…`` in any order, and a row per iteration; rows of an execution are contiguous.

An iteration whose allocation changed before its end has a row per segment, in CSV and as stored: all with its number,
each with its allocation and seconds; other metrics and features are those of the whole iteration. In JSON it is one
report with ``segments``. If the seconds of the change before iteration n were measured, they are a row of their own,
numbered n - 0.5, at the iteration's allocation: ``change_seconds`` in JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from typing_extensions import override

from app.charts.text import exact
from app.kinds.columns import Floats, csv_writer, unescape_formula
from app.kinds.contract.inputs import (
    LARGEST_NUMBER,
    SMALLEST_NUMBER,
    FieldIssue,
    InvalidInput,
    Refused,
    Sample,
    name_issue,
    plain,
    tabular,
)
from app.kinds.contract.samples import ExecutionBase, ExecutionColumns, Export, Format
from app.kinds.iterative.contingencies import MOST_SEGMENTS, encode_segments
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.spec import SECONDS
from app.kinds.records import CSV, ReportCodec, error_value, refuse, report_formats

PARTS = {"allocation": "allocation", "metrics": "metric", "features": "feature"}
"""Parts of a report: names in JSON, and prefixes of CSV columns."""
ITERATION = "/iteration"
HALF = 0.5  # less than its iteration's is the number of a change
CHANGE = "must be n - 0.5 for the change before iteration n, and then n, in one row each, with the same allocation"
MOST_MORE_ROWS = 10_000  # of an execution than iterations, for segments
Parts = Sequence[tuple[Mapping[str, float], float]]
"""Allocation, by resource, and seconds of each segment of an iteration."""


def names_of(layout: Layout) -> dict[str, Sequence[str]]:
    """Return the names of a layout's resources, metrics and features, each under its part's key in ``PARTS``."""
    return dict(zip(PARTS, (layout.resources, layout.metrics, layout.features), strict=True))


def column_names(layout: Layout) -> list[str]:
    """Return the names of a layout's CSV columns, in order."""
    each = (f"{PARTS[part]}.{name}" for part, names in names_of(layout).items() for name in names)
    return ["execution", "iteration", *each]


# Validation of executions, many rows at a time.


class RowIssue(NamedTuple):
    """First error of an execution: index of its row, from 0, and the issue."""

    row: int
    issue: FieldIssue


class Checker:
    """Validates executions of one layout: arrays [n, C] with n rows of iteration number, allocation, metrics and
    features (C columns), in the units of the spec."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        spec, self.names = layout.spec, names_of(layout)
        self.pointers = [ITERATION, *(f"/{part}/{name}" for part, names in self.names.items() for name in names)]
        ends = 1 + np.cumsum([0, *map(len, self.names.values())])
        self._parts = {part: slice(*ends[i : i + 2].tolist()) for i, part in enumerate(PARTS)}
        self._minimum = np.array([r.minimum for r in spec.resources])
        self._step = np.array([r.step for r in spec.resources])
        self._top = np.array([r.levels - 1 for r in spec.resources])
        self._low = np.array([f.minimum for f in spec.features])
        self._high = np.array([f.maximum for f in spec.features])
        self._count = np.arange(spec.iterations, dtype=np.float64)

    @property
    def columns(self) -> int:
        """Number of columns C: iteration number, R resources, M metrics and F features."""
        return len(self.pointers)

    def fault(self, data: Floats) -> RowIssue | None:
        """Return the first error of an execution [n, C]; None: it is valid."""
        allocation, metrics, features = self._parts.values()
        good = np.abs(data) <= LARGEST_NUMBER  # False for infinities and NaN
        good[0, 0] &= data[0, 0] in self._count
        goes_on = self._goes_on(data)
        with np.errstate(invalid="ignore", over="ignore"):  # values that aren't finite are refused anyway
            change = data[:, 0] % 1 == HALF
            good[1:, 0] &= data[1:, 0] == data[:-1, 0] + np.where(change[1:] | change[:-1], HALF, 1.0)
            good[-1, 0] &= not change[-1]
            good[:, 0] &= data[:, 0] < len(self._count)
            goes_on &= ~change[:-1] & ~np.append(False, change[:-2])
            good[1:, 0] |= goes_on
            exact = (data[:, allocation] - self._minimum) / self._step
            level = np.rint(exact)
            good[1:, 0] &= ~change[:-1] | (level[1:] == level[:-1]).all(axis=1)
            good[:, allocation] &= (np.abs(exact - level) <= 1e-6) & (level >= 0) & (level <= self._top)
        good[:, metrics] &= data[:, metrics] >= SMALLEST_NUMBER
        good[:, features] &= (data[:, features] >= self._low) & (data[:, features] <= self._high)
        if good.all():
            return None
        row, column = divmod(int(np.argmin(good)), self.columns)
        return RowIssue(row, self._issue(data, row, column))

    def _goes_on(self, data: Floats) -> NDArray[np.bool_]:
        """Return a mask [n − 1]: whether a row after the first is a further segment of the previous row's iteration."""
        allocation, metrics, features = self._parts.values()
        same = data[1:] == data[:-1]
        same[:, metrics.start + self.layout.seconds] = True
        values: NDArray[np.bool_] = same[:, 0] & ~same[:, allocation].all(axis=1)
        return values & same[:, metrics].all(axis=1) & same[:, features].all(axis=1)

    def _issue(self, data: Floats, row: int, column: int) -> FieldIssue:
        value = plain(data[row, column])
        first = row - 2 if row > 1 and data[row, 0] == data[row - 1, 0] else row - 1
        if column == 0 and any(number % 1 == HALF for number in data[max(first, 0) : row + 1, 0].tolist()):
            return FieldIssue(ITERATION, CHANGE, value)
        if column == 0 and row and data[row, 0] == data[row - 1, 0] + 1:
            return too_many_issue(len(self._count), value)
        if column == 0:
            return iteration_issue(plain(data[row - 1, 0] + 1) if row else None, value)
        try:
            self.layout.encode_report(*self.split_row(data[row]).values())
        except InvalidInput as error:
            by_pointer = {issue.pointer: issue for issue in error.errors}
            issue = by_pointer.get(self.pointers[column], error.errors[0])
            return issue._replace(value=plain(issue.value))
        return FieldIssue(self.pointers[column], "is not accepted", value)

    def split_row(self, row: Floats) -> dict[str, dict[str, float]]:
        """Return the numbers of one row [C] by part and name, without the iteration number."""
        values = row.tolist()
        return {part: dict(zip(self.names[part], values[at], strict=True)) for part, at in self._parts.items()}

    def table(
        self,
        reports: Iterable[Sequence[Mapping[str, float]]],
        first: int,
        segments: Mapping[int, Parts] | None = None,
        paused: Mapping[int, float] | None = None,
    ) -> Floats:
        """Return reports as a table [n, C], numbered from ``first``; each has allocation, metrics and features.

        ``segments``: allocation and seconds of each segment, of the iterations that have any; ``paused``: seconds of
        the change before an iteration, where they were measured. Raises KeyError if a report lacks a name."""
        places = [(at, name) for at, names in enumerate(self.names.values()) for name in names]
        changed, rows = segments or {}, list[list[float]]()
        for iteration, (allocation, metrics, features) in enumerate(reports, start=first):
            each = changed.get(iteration)
            pause = (paused or {}).get(iteration, 0.0)
            parts = [(float(iteration), allocation, metrics[SECONDS] - pause)]
            if each is not None:
                parts = [(float(iteration), at, took) for at, took in each]
            elif pause:
                parts.insert(0, (iteration - HALF, allocation, pause))
            for number, at, took in parts:
                fields = (at, {**metrics, SECONDS: took}, features)
                rows.append([number, *[fields[part][name] for part, name in places]])
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.columns)

    def reports(self, data: Floats) -> Iterator[dict[str, Any]]:
        """Yield the iterations of a table [n, C] as JSON: number, allocation, metrics and features, and segments."""
        begins = np.flatnonzero(np.diff(np.ceil(data[:, 0]), prepend=-1))
        seconds = self._parts["metrics"].start + self.layout.seconds
        for rows in np.split(data, begins[1:]):
            whole, change = rows[-1].copy(), bool(rows[0, 0] % 1)
            whole[seconds] = rows[:, seconds].sum()
            report: dict[str, Any] = {"iteration": int(whole[0]), **self.split_row(whole)}
            if change:
                report["change_seconds"] = float(rows[0, seconds])
            elif len(rows) > 1:
                each = zip(map(self.split_row, rows), rows[:, seconds].tolist(), strict=True)
                report["segments"] = [{"allocation": parts["allocation"], "seconds": took} for parts, took in each]
            yield report

    def seconds(self, data: Floats) -> float:
        """Return the sum of ``iteration_seconds`` of an execution [n, C], capped to a finite number for JSON."""
        with np.errstate(over="ignore"):
            seconds = data[:, self._parts["metrics"].start + self.layout.seconds].sum()
        return float(min(seconds, np.finfo(np.float64).max))


def iteration_issue(expected: int | None, value: Any) -> FieldIssue:
    """Return the issue of an iteration number ``value``; ``expected`` None: in the first row, any of the spec's is
    accepted."""
    if expected is None:
        return FieldIssue(ITERATION, "must be a whole number from 0 to less than the workload's iterations", value)
    return FieldIssue(ITERATION, f"must be {expected}: iterations count up without gaps, in one block", value)


def too_many_issue(iterations: int, value: Any) -> FieldIssue:
    """Return the issue of an execution whose iteration number ``value`` is beyond the workload's ``iterations``."""
    return FieldIssue(ITERATION, f"must be less than the workload's {iterations} iterations", value)


# CSV reader, optimised for little work per row.


class CsvReader:
    """Reads executions of one layout from CSV; holds the rows of one execution at a time."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._limit = checker.layout.iterations + MOST_MORE_ROWS
        self._names = column_names(checker.layout)

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Yield executions in order, a ``Refused`` for each with an invalid row.

        Raises:
            InvalidInput: the header is missing, or has unknown, repeated or missing columns.
        """
        head, _, rest = next(blocks, b"").partition(b"\n")
        header = self._header(head)
        name_at, width = header.index("execution"), len(header)
        pick = itemgetter(*(header.index(name) for name in self._names[1:]))
        current: _Open | None = None
        for number, row in _number_lines(chain([rest], blocks) if rest else blocks):
            cells = _split_cells(row) if '"' in row else row.rstrip("\r").split(",")
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
                text = f"{len(cells)} cells" if cells else "quotes that don't match"
                message = f"must have {width} cells, has {text}"
                current.refuse(number, FieldIssue("", message, error_value(row)))
        if current is not None:
            yield self._close(current)

    def _header(self, raw: bytes) -> list[str]:
        line = raw.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").decode("utf-8", "replace")
        names = [cell.strip() for cell in _split_cells(line)]
        known = f"unknown column; known: {', '.join(self._names)}"
        issues = [
            FieldIssue(f"/header/{error_value(name)}", known, error_value(name))
            for name in names
            if name not in self._names
        ]
        for name in self._names:
            if names.count(name) != 1:
                wrong = ("column given twice", name) if name in names else ("column is missing", None)
                issues.append(FieldIssue(f"/header/{name}", *wrong))
        refuse(issues)
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
        return _counted(tabular(current.name, current.first, data, {"seconds": self._checker.seconds(data)}), data)

    def _not_a_number(self, rows: list[tuple[str, ...]]) -> tuple[int, FieldIssue]:
        for index, cells in enumerate(rows):
            for pointer, cell in zip(self._checker.pointers, cells, strict=True):
                try:
                    _numbers([(cell,)])
                except ValueError:
                    return index, FieldIssue(pointer, "must be a number", error_value(cell))
        return 0, iteration_issue(0, rows[0][0])


class _Open:
    def __init__(self, cell: str, first: int) -> None:
        self.cell, self.name = cell, unescape_formula(cell)
        self.first = first
        self.rows: list[tuple[str, ...]] = []
        self.lines: list[int] = []
        self.refused: Refused | None = None
        self.alike = 0

    def take(self, line: int, cells: tuple[str, ...], limit: int) -> None:
        """Append the ``cells`` of line number ``line``; refuse the execution if it already has ``limit`` rows, or
        ``MOST_SEGMENTS`` of this iteration."""
        self.alike = self.alike + 1 if self.rows and cells[0] == self.rows[-1][0] else 1
        if self.alike > MOST_SEGMENTS:
            message = f"must have at most {MOST_SEGMENTS} rows, one for each segment"
            self.refuse(line, FieldIssue(ITERATION, message, error_value(cells[0])))
        elif len(self.rows) == limit:
            message = f"must be within the first {limit:,} rows of its execution"
            self.refuse(line, FieldIssue(ITERATION, message, error_value(cells[0])))
        else:
            self.rows.append(cells)
            self.lines.append(line)

    def refuse(self, line: int, issue: FieldIssue) -> None:
        """Mark the execution as refused for the ``issue`` at line number ``line``, and drop its rows."""
        self.refused = Refused(self.name, line, issue)
        self.rows, self.lines = [], []


def _numbers(rows: list[tuple[str, ...]]) -> Floats:
    """Convert n rows of C cells to numbers, [n, C]; raises ValueError for other text, ``1_000`` included."""
    width = len(rows[0])
    data = np.fromiter(map(float, chain.from_iterable(rows)), np.float64, len(rows) * width)
    if any("_" in cell for row in rows for cell in row):
        raise ValueError("underscore in a number")
    return data.reshape(-1, width)


def _number_lines(blocks: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield number (from 2) and text of each line after the header that isn't blank."""
    before = 1
    for block in blocks:
        if not block.isspace():  # of which gzip packs a thousand lines in a byte
            for number, line in enumerate(block.decode("utf-8", "surrogateescape").split("\n"), start=before + 1):
                if line and line != "\r":
                    yield number, line
        before += block.count(b"\n") + 1


def _split_cells(line: str) -> list[str]:
    if line.count('"') % 2:
        return []
    try:
        return next(csv.reader([line.rstrip("\r")], strict=True), [])
    except csv.Error:
        return []


# JSON bodies, and schemas of executions in the API.


class SampleSegment(msgspec.Struct, forbid_unknown_fields=True):
    """A part of an iteration in JSON: amounts by resource, and its duration in seconds."""

    allocation: dict[str, float]
    seconds: Annotated[float, msgspec.Meta(ge=SMALLEST_NUMBER)]


class SampleReport(msgspec.Struct, forbid_unknown_fields=True):
    """An iteration in JSON, values in the units of the spec; its number is optional."""

    allocation: dict[str, float]
    metrics: dict[str, float]
    features: dict[str, float] = {}
    iteration: int | None = None
    segments: Annotated[list[SampleSegment], msgspec.Meta(max_length=MOST_SEGMENTS)] = []
    change_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution in JSON: its name, and a report per iteration."""

    execution: str
    reports: list[SampleReport]


class SegmentRead(BaseModel):
    """A part of an iteration at one allocation (amounts by resource), and its duration in seconds."""

    allocation: dict[str, float]
    seconds: float


class Report(BaseModel):
    """Allocation, metrics and features of one iteration, in the units of the spec."""

    iteration: int = Field(description="Counts from 0; an execution may begin later.")
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(examples=[{"batch": 128}])
    segments: list[SegmentRead] = Field(
        default=[], description="Its parts, if the allocation changed before its end; the last one's is `allocation`."
    )
    change_seconds: float = Field(default=0.0, description="Seconds of the change before it, as far as measured.")


class ExecutionRead(ExecutionBase):
    """A stored execution of iterations."""

    kind: Literal["iterative"]
    reports: list[Report] | None = Field(default=None, description="Every iteration, if `reports=true`.")


REPORT_EXAMPLE = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
CSV_EXAMPLE = (
    "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
    "run-17,0,4,31.5,128\n"
    "run-17,1,4,30.9,128\n"
)
_REPORT: dict[str, Any] = {
    "type": "object",
    "required": ["allocation", "metrics"],
    "properties": {
        "iteration": {"type": "integer", "minimum": 0},
        "change_seconds": {"type": "number", "minimum": 0},
        **{part: {"type": "object", "additionalProperties": {"type": "number"}} for part in PARTS},
        "segments": {
            "type": "array",
            "maxItems": MOST_SEGMENTS,
            "items": {
                "type": "object",
                "required": ["allocation", "seconds"],
                "properties": {
                    "allocation": {"type": "object", "additionalProperties": {"type": "number"}},
                    "seconds": {"type": "number", "minimum": SMALLEST_NUMBER},
                },
            },
        },
    },
}


class IterationSamples(ReportCodec):
    """Codec of executions as little-endian float64, [n, C]: n rows of iteration, allocation, metrics and features."""

    formats: ClassVar[Mapping[str, Format]] = {
        **report_formats(
            _REPORT,
            "One sample per line, as JSON.",
            {"samples": [{"execution": "run-17", "reports": [REPORT_EXAMPLE]}]},
        ),
        CSV: Format(lambda codec, _: CsvReader(codec.checker), "upload", "short", example=CSV_EXAMPLE),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        CSV: Export(
            lambda codec: ",".join(column_names(codec.layout)) + "\n",
            lambda codec, execution: codec.csv_rows(execution),
        )
    }
    execution: ClassVar[type[ExecutionBase]] = ExecutionRead
    body: ClassVar[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(SampleBody)

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.checker = Checker(layout)

    @property
    def width(self) -> int:
        """Number of columns C of the table."""
        return self.checker.columns

    @override
    def pack(self, name: str, line: int, table: Floats) -> Sample:
        return _counted(super().pack(name, line, table), table)

    def seconds(self, table: Floats) -> float:
        """Return the sum of the ``iteration_seconds`` of an execution [n, C], in seconds."""
        return self.checker.seconds(table)

    def members(self, report: SampleReport) -> int:
        """Return the least number of JSON members in a report's text, by which duplicate names are detected."""
        parts = len(report.allocation) + len(report.metrics) + len(report.features)
        parts += sum(2 + len(part.allocation) for part in report.segments) + bool(report.segments)
        return 2 + parts + bool(report.features) + (report.iteration is not None) + bool(report.change_seconds)

    def table(self, reports: Sequence[SampleReport]) -> Floats:
        """Convert n reports to a table [n, C]; raises InvalidInput, with the first error, if they aren't valid."""
        if not reports:
            raise InvalidInput([FieldIssue("/reports", "must hold at least one report", [])])
        most, first = self.layout.iterations, reports[0].iteration or 0
        if not 0 <= first < most:
            raise _at_report(0, iteration_issue(None, first))
        if len(reports) > most - first:
            raise InvalidInput([too_many_issue(most, first + len(reports) - 1)])
        known = {part: set(names) for part, names in self.checker.names.items()}
        each = [(report.allocation, report.metrics, report.features) for report in reports]
        for index, (parts, report) in enumerate(zip(each, reports, strict=True)):
            for (part, names), columns in zip(self.checker.names.items(), parts, strict=True):
                if columns.keys() != known[part]:
                    raise _at_report(index, _names_issue(part, names, columns))
            if report.iteration is not None and report.iteration != first + index:
                raise _at_report(index, iteration_issue(first + index, report.iteration))
        data = self.checker.table(each, first)
        fault = self.checker.fault(data)
        if fault is not None:
            raise _at_report(*fault)
        changed = {first + i: self._segments(i, report) for i, report in enumerate(reports) if report.segments}
        paused = self._changes(reports, first)
        return self.checker.table(each, first, changed, paused) if changed or paused else data

    def _changes(self, reports: Sequence[SampleReport], first: int) -> dict[int, float]:
        """Return the seconds of the changes before iterations, by number, where they were measured."""
        for index, report in enumerate(reports):
            took, pause = report.metrics[SECONDS], report.change_seconds
            if pause and (report.segments or took - pause < SMALLEST_NUMBER or not first + index):
                words = f"must be less than {exact(took)} s, the iteration's, after iteration 0, without `segments`"
                raise _at_report(index, FieldIssue("/change_seconds", words, pause))
        return {first + index: report.change_seconds for index, report in enumerate(reports) if report.change_seconds}

    def _segments(self, index: int, report: SampleReport) -> Parts:
        levels, metrics, _ = self.layout.encode_report(report.allocation, report.metrics, report.features)
        try:
            encode_segments(self.layout, report.segments, levels, metrics)
        except InvalidInput as error:
            raise _at_report(index, error.errors[0]) from error
        return [(part.allocation, part.seconds) for part in report.segments]

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """Convert a run's reports to an execution, numbered from ``first``; None without reports.

        Raises KeyError if a report lacks one of the layout's names."""
        each = [[report.get(part, {}) for part in PARTS] for report in reports]
        changed = {
            iteration: [(part["allocation"], part["seconds"]) for part in report["segments"]]
            for iteration, report in enumerate(reports, start=first)
            if report.get("segments")
        }
        paused = {
            iteration: float(report["change_seconds"])
            for iteration, report in enumerate(reports, start=first)
            if report.get("change_seconds") and iteration > first and iteration not in changed
        }
        return self.pack(run, 0, self.checker.table(each, first, changed, paused)) if each else None

    def reports(self, data: bytes) -> list[dict[str, Any]]:
        """Return every iteration of stored bytes as JSON: its number, allocation, metrics, features, and segments."""
        return list(self.checker.reports(self.unpack(data)))

    def csv_rows(self, execution: ExecutionColumns) -> Iterator[str]:
        """Yield a stored execution as lines of CSV; numbers are the shortest text that parses to the same value."""
        name = csv_writer()([execution.name]).removesuffix("\n")
        for values in self.unpack(execution.data).tolist():
            yield f"{name},{','.join([repr(value).removesuffix('.0') for value in values])}\n"


def _counted(sample: Sample, table: Floats) -> Sample:
    """Return a sample with its number of iterations, of which some have several rows in ``table`` [n, C]."""
    return sample._replace(iterations=len(np.unique(np.ceil(table[:, 0]))))


def _names_issue(part: str, names: Sequence[str], values: Mapping[str, float]) -> FieldIssue:
    for name, value in values.items():
        if name not in names:
            return FieldIssue(f"/{part}/{name}", f"unknown name; known: {', '.join(names) or 'none'}", plain(value))
    missing = next(name for name in names if name not in values)
    return FieldIssue(f"/{part}/{missing}", "is missing", None)


def _at_report(index: int, issue: FieldIssue) -> InvalidInput:
    return InvalidInput([issue._replace(pointer=f"/reports/{index}{issue.pointer}")])
