"""Samples of kind `iterative`: reading, checking, storing and exporting executions."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.inputs import (
    LARGEST_NUMBER,
    SMALLEST_NUMBER,
    FieldIssue,
    InvalidInput,
    Refused,
    Sample,
    name_issue,
    plain,
    printable,
    tabular,
)
from app.kinds.contract.row_reading import MALFORMED, JsonReader, NdjsonReader, malformed, repeated
from app.kinds.contract.samples import FILE, ExecutionBase, Export, Format, Stored, line, unescaped
from app.kinds.iterative.layout import Layout

# Rows of an execution against the workload's layout, many at a time.


Floats = NDArray[np.float64]
ITERATION = "/iteration"


class RowIssue(NamedTuple):
    """The first error of an execution: index of its row, and the offending field."""

    row: int
    issue: FieldIssue


class Checker:
    """Checks executions of one layout: arrays [n, C] of iteration, allocation, metrics and features, C columns."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        spec = layout.spec
        self.pointers = [
            ITERATION,
            *(f"/allocation/{name}" for name in layout.resources),
            *(f"/metrics/{name}" for name in layout.metrics),
            *(f"/features/{name}" for name in layout.features),
        ]
        self._allocation = slice(1, 1 + len(layout.resources))
        self._metrics = slice(self._allocation.stop, self._allocation.stop + len(layout.metrics))
        self._features = slice(self._metrics.stop, self._metrics.stop + len(layout.features))
        self._minimum = np.array([r.minimum for r in spec.resources])
        self._step = np.array([r.step for r in spec.resources])
        self._top = np.array([r.levels - 1 for r in spec.resources])
        self._low = np.array([f.minimum for f in spec.features])
        self._high = np.array([f.maximum for f in spec.features])
        self._count = np.arange(spec.iterations, dtype=np.float64)

    @property
    def columns(self) -> int:
        """Number of columns C."""
        return len(self.pointers)

    def fault(self, data: Floats) -> RowIssue | None:
        """What is wrong with an execution, [n, C] with n ≤ the spec's iterations; None when nothing is."""
        good = np.abs(data) <= LARGEST_NUMBER  # neither are infinities, nor what is no number
        good[0, 0] &= data[0, 0] in self._count
        good[1:, 0] &= data[1:, 0] == data[0, 0] + self._count[1 : len(data)]
        good[:, 0] &= data[:, 0] < len(self._count)
        with np.errstate(invalid="ignore", over="ignore"):  # what isn't finite is refused anyway
            exact = (data[:, self._allocation] - self._minimum) / self._step
            level = np.rint(exact)
            good[:, self._allocation] &= (np.abs(exact - level) <= 1e-6) & (level >= 0) & (level <= self._top)
        good[:, self._metrics] &= data[:, self._metrics] >= SMALLEST_NUMBER
        features = data[:, self._features]
        good[:, self._features] &= (features >= self._low) & (features <= self._high)
        if good.all():
            return None
        row, column = divmod(int(np.argmin(good)), self.columns)
        return RowIssue(row, self._issue(data, row, column))

    def _issue(self, data: Floats, row: int, column: int) -> FieldIssue:
        value = plain(data[row, column])
        if column == 0 and row and data[row, 0] == data[0, 0] + row:
            return too_many_issue(len(self._count), value)
        if column == 0:
            return iteration_issue(plain(data[0, 0] + row) if row else None, value)
        try:
            self.layout.encode_report(*self.named(data[row]))
        except InvalidInput as error:
            by_pointer = {issue.pointer: issue for issue in error.errors}
            issue = by_pointer.get(self.pointers[column], error.errors[0])
            return issue._replace(value=plain(issue.value))
        return FieldIssue(self.pointers[column], "is not accepted", value)

    def named(self, row: Floats) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
        """Allocation, metrics and features of one row [C] by name."""
        values = row.tolist()
        return (
            dict(zip(self.layout.resources, values[self._allocation], strict=True)),
            dict(zip(self.layout.metrics, values[self._metrics], strict=True)),
            dict(zip(self.layout.features, values[self._features], strict=True)),
        )

    def summary(self, data: Floats) -> dict[str, float]:
        """Sum of ``iteration_seconds`` over the rows of an execution; a finite number, as JSON has no other."""
        with np.errstate(over="ignore"):
            seconds = data[:, self._metrics.start + self.layout.seconds].sum()
        return {"seconds": float(min(seconds, np.finfo(np.float64).max))}


def iteration_issue(expected: int | None, value: Any) -> FieldIssue:
    """An iteration number that isn't the next one, ``expected``; None: of the first, which may be any of the spec's."""
    if expected is None:
        return FieldIssue(ITERATION, "must be a whole number from 0 to less than the workload's iterations", value)
    return FieldIssue(ITERATION, f"must be {expected}: iterations count up without gaps, in one block", value)


def too_many_issue(iterations: int, value: Any) -> FieldIssue:
    """An execution longer than the workload's."""
    return FieldIssue(ITERATION, f"must be less than the workload's {iterations} iterations", value)


def table(rows: Sequence[Sequence[float]], columns: int) -> Floats:
    """Rows as an array, [n, columns]."""
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)


# CSV: a header, then one row per iteration; the rows of an execution stand together.
#
# ``execution,iteration,allocation.<resource>…,metric.<metric>…,feature.<feature>…``, columns in any order.


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
        for number, row in _numbered(chain([rest], blocks) if rest else blocks):
            cells = _quoted(row) if '"' in row else row.rstrip("\r").split(",")
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
                current.refuse(number, _width_issue(row, width, len(cells)))
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


# JSON: ``{"execution": "…", "reports": [{"allocation": …, "metrics": …, "features": …}, …]}``.
#
# As ``application/x-ndjson`` one such sample per line; as ``application/json`` all of them in ``{"samples": […]}``.


class SampleReport(msgspec.Struct, forbid_unknown_fields=True):
    """What one iteration used and measured; its number may be left out."""

    allocation: dict[str, float]
    metrics: dict[str, float]
    features: dict[str, float] = {}
    iteration: int | None = None


class SampleBody(msgspec.Struct, forbid_unknown_fields=True):
    """An execution: its identifier, and its reports in order."""

    execution: str
    reports: list[SampleReport]


_sample = msgspec.json.Decoder(SampleBody)


class SampleReader:
    """Reads one execution out of its JSON."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """One execution out of its JSON."""
        try:
            sample = _sample.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        twice = repeated(data, _members(sample))
        return self._checked(sample, number) if twice is None else Refused(sample.execution, number, twice)

    def _checked(self, sample: SampleBody, number: int) -> Sample | Refused:
        issue = name_issue(sample.execution) or self._shape_issue(sample)
        if issue is not None:
            return Refused(sample.execution, number, issue)
        layout, first = self._checker.layout, _first(sample)
        rows = [
            [
                float(first + index),
                *(report.allocation[name] for name in layout.resources),
                *(report.metrics[name] for name in layout.metrics),
                *(report.features[name] for name in layout.features),
            ]
            for index, report in enumerate(sample.reports)
        ]
        data = table(rows, self._checker.columns)
        fault = self._checker.fault(data)
        if fault is None:
            return tabular(sample.execution, number, data, self._checker.summary(data))
        return Refused(sample.execution, number, _at_report(fault.row, fault.issue))

    def _shape_issue(self, sample: SampleBody) -> FieldIssue | None:
        layout = self._checker.layout
        if not sample.reports:
            return FieldIssue("/reports", "must hold at least one report", [])
        first = _first(sample)
        if not 0 <= first < layout.iterations:
            return _at_report(0, iteration_issue(None, first))
        if len(sample.reports) > layout.iterations - first:
            return too_many_issue(layout.iterations, first + len(sample.reports) - 1)
        for index, report in enumerate(sample.reports):
            issue = (
                _names_issue("allocation", layout.resources, report.allocation)
                or _names_issue("metrics", layout.metrics, report.metrics)
                or _names_issue("features", layout.features, report.features)
                or _number_issue(first + index, report.iteration)
            )
            if issue is not None:
                return _at_report(index, issue)
        return None


def _members(sample: SampleBody) -> int:
    """How many members its objects had, as far as is known."""
    given = [len(one.allocation) + len(one.metrics) + len(one.features) for one in sample.reports]
    optional = [bool(one.features) + (one.iteration is not None) for one in sample.reports]
    return 2 + 2 * len(given) + sum(given) + sum(optional)


def _names_issue(part: str, names: list[str], given: Mapping[str, float]) -> FieldIssue | None:
    if len(given) == len(names) and all(name in given for name in names):
        return None
    for name, value in given.items():
        if name not in names:
            return FieldIssue(f"/{part}/{name}", f"unknown name; known: {', '.join(names) or 'none'}", plain(value))
    missing = next(name for name in names if name not in given)
    return FieldIssue(f"/{part}/{missing}", "is missing", None)


def _first(sample: SampleBody) -> int:
    return sample.reports[0].iteration or 0


def _number_issue(expected: int, given: int | None) -> FieldIssue | None:
    return None if given is None or given == expected else iteration_issue(expected, given)


def _at_report(index: int, issue: FieldIssue) -> FieldIssue:
    return issue._replace(pointer=f"/reports/{index}{issue.pointer}")


# Samples of kind ``iterative`` as they cross the API.


REPORT_EXAMPLE = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
SAMPLE_EXAMPLE = {"execution": "run-17", "reports": [REPORT_EXAMPLE]}
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
        **{
            part: {"type": "object", "additionalProperties": {"type": "number"}}
            for part in ("allocation", "metrics", "features")
        },
    },
}
_SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["execution", "reports"],
    "properties": {
        "execution": {"type": "string", "minLength": 1, "maxLength": 255},
        "reports": {"type": "array", "minItems": 1, "items": _REPORT},
    },
}
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {"samples": {"type": "array", "items": _SAMPLE}},
}
NDJSON_SCHEMA: dict[str, Any] = {**FILE, "description": "One sample per line, as JSON."}


class Report(BaseModel):
    """What one iteration used and measured."""

    iteration: int = Field(description="Counts from 0; an execution may begin later.")
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(examples=[{"batch": 128}])


class ExecutionRead(ExecutionBase):
    """A stored execution of iterations."""

    kind: Literal["iterative"]
    reports: list[Report] | None = Field(default=None, description="Every iteration, if `reports=true`.")


# Samples of kind ``iterative``: an execution is a table of iterations.


class IterationSamples:
    """Executions as float64, little-endian, [iterations, C]: iteration, allocation, metrics, features."""

    formats: ClassVar[Mapping[str, Format]] = {
        "application/json": Format(
            lambda codec, _: JsonReader(SampleReader(codec.checker).sample),
            "json",
            "json",
            schema=JSON_SCHEMA,
            example={"samples": [SAMPLE_EXAMPLE]},
        ),
        "application/x-ndjson": Format(
            lambda codec, _: NdjsonReader(SampleReader(codec.checker).sample), "upload", "json", schema=NDJSON_SCHEMA
        ),
        "text/csv": Format(lambda codec, _: CsvReader(codec.checker), "upload", "short", example=CSV_EXAMPLE),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        "text/csv": Export(lambda codec: codec.csv_head(), lambda codec, execution: codec.csv_rows(execution))
    }
    tells_reports: ClassVar[bool] = True

    def __init__(self, layout: Layout) -> None:
        self.checker = Checker(layout)

    def unpacked(self, data: bytes) -> NDArray[np.float64]:
        """An execution's table, [iterations, C]."""
        return np.frombuffer(data, "<f8").reshape(-1, self.checker.columns)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Sum of an execution's seconds."""
        return self.checker.summary(self.unpacked(data))

    def read(self, execution: Stored, *, reports: bool) -> ExecutionRead:
        """An execution as answered; with every iteration if asked."""
        return ExecutionRead(
            kind="iterative",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            created_at=execution.created_at,
            reports=[self._report(values) for values in self.unpacked(execution.data)] if reports else None,
            **(execution.summary or {}),
        )

    def _report(self, values: NDArray[np.float64]) -> Report:
        allocation, metrics, features = self.checker.named(values)
        return Report(iteration=int(values[0]), allocation=allocation, metrics=metrics, features=features)

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """One row per report, numbered from ``first`` on."""
        if not reports:
            return None
        layout = self.checker.layout
        parts = [(layout.resources, "allocation"), (layout.metrics, "metrics"), (layout.features, "features")]
        rows = [
            [float(iteration), *(float(report[part][name]) for names, part in parts for name in names)]
            for iteration, report in enumerate(reports, start=first)
        ]
        data = table(rows, self.checker.columns)
        return tabular(run, 0, data, self.checker.summary(data))

    def csv_head(self) -> str:
        """The header of an export."""
        return ",".join(column_names(self.checker.layout)) + "\n"

    def csv_rows(self, execution: Stored) -> Iterator[str]:
        """The rows of an execution."""
        name = line([execution.name]).removesuffix("\n")
        for values in self.unpacked(execution.data).tolist():
            yield f"{name},{','.join(map(_number, values))}\n"


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(value).removesuffix(".0")
