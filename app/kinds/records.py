"""Samples as rows: readers, exports, errors and schemas derived from a kind's declared columns.

Samples have one of two shapes. First, an execution holds rows of several forms (``columns.Form``); a body of CSV or
NDJSON is one execution, read as a stream, and accepted or refused as a whole (``RowCodec``). Second, an execution is
one report per iteration, a table of float64; a body holds many executions, each accepted or refused by itself
(``ReportCodec``)."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from app.kinds.columns import (
    BETWEEN,
    NOTHING,
    Books,
    Flags,
    Floats,
    Form,
    Values,
    all_columns,
    csv_writer,
    struct,
    unescape_formula,
    words,
)
from app.kinds.contract.inputs import (
    LONGEST_WALKED,
    MALFORMED,
    MAXIMUM_NAME,
    TWICE,
    FieldIssue,
    InvalidInput,
    Refused,
    Sample,
    filled_lines,
    first_issue,
    invalid,
    more_names,
    name_issue,
    plain,
    printable,
    repeated_place,
    tabular,
)
from app.kinds.contract.samples import FILE, ExecutionColumns, Export, Format, SampleCodec

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
MOST_ISSUES = 20


# Blocks of rows, and their issues.


class Rows(NamedTuple):
    """A block of n rows of a body.

    Attributes:
        columns: CSV cells or JSON values by name of the column, [n] each; None or "": missing.
        where: function from a row's position in the block (from 0) to a JSON pointer to it.
    """

    columns: Mapping[str, Sequence[Any]]
    where: Callable[[int], str]

    @property
    def rows(self) -> int:
        """Number of rows n in the block."""
        return len(next(iter(self.columns.values()), ()))

    def take(self, places: Sequence[int]) -> Rows:
        """Return a block of the rows at positions ``places``; raises IndexError beyond the last row."""
        columns = {name: [values[i] for i in places] for name, values in self.columns.items()}
        return Rows(columns, lambda row: self.where(places[row]))

    def column(self, name: str) -> Sequence[Any]:
        """Return the values of a column, [n]; all None if the block has no such column."""
        return self.columns.get(name) or [None] * self.rows

    def missing(self, name: str) -> Flags:
        """Return a mask [n] of the rows whose value in a column is missing (None or "")."""
        return np.array([value in NOTHING for value in self.column(name)], np.bool_)

    def issues(self, field: str, wrong: Flags, message: str) -> list[FieldIssue]:
        """Return an issue with ``message`` for each row marked in ``wrong`` [n], at most ``MOST_ISSUES``; ``field`` is
        the name of the column."""
        values = self.column(field)
        return [
            FieldIssue(f"{self.where(row)}/{field}", message, error_value(values[row]))
            for row in np.flatnonzero(wrong)[:MOST_ISSUES].tolist()
        ]


def error_value(value: Any) -> Any:
    """Return ``value`` as shown in an error: text cut to 80 characters, NaN and infinities as text."""
    return printable(value[:80]) if isinstance(value, str) else plain(value)


def rejection(issues: Sequence[FieldIssue]) -> InvalidInput:
    """Return an InvalidInput with the first ``MOST_ISSUES`` issues of a body; its message has the first three."""
    text = "; ".join(f"{issue.pointer or 'body'}: {issue.message}" for issue in issues[:3])
    return InvalidInput(issues[:MOST_ISSUES], printable(text) + ("; and more" if len(issues) > 3 else ""))


def refuse(issues: Sequence[FieldIssue]) -> None:
    """Raise InvalidInput if there are any issues."""
    if issues:
        raise rejection(issues)


class Collector(ABC):
    """Collects the rows of one execution; subclasses add rules across columns, and serialisation.

    Attributes:
        forms: columns and limits of each form that a row can have, by the form's name.
        books: names that the execution introduced: by book (such as "tasks"), the position of each name.
        counts: number of rows so far, by the form's name.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms = {form.name: form for form in forms}
        self.books: Books = defaultdict(dict)
        self.counts = dict.fromkeys(self.forms, 0)
        self._words = words(forms)
        self._last = {column.name: 0 for column in all_columns(forms).values() if column.ascending}

    @abstractmethod
    def keep(self, form: str, values: dict[str, Values], rows: Rows) -> None:
        """Store validated rows of the form named ``form``; raises InvalidInput if they contradict earlier rows.

        ``values`` holds the numbers of each column, [n] or [n, most] for n rows."""

    @abstractmethod
    def pack(self) -> tuple[bytes, str, Mapping[str, Any]]:
        """Return the execution's bytes to store, the hexadecimal digest of its content, and its summary for lists."""

    def rules(self, form: str, values: Mapping[str, Values], rows: Rows) -> list[FieldIssue]:  # noqa: ARG002
        """Return issues across the columns of rows of the form named ``form``; none by default."""
        return []

    @property
    def count(self) -> int:
        """Number of rows stored so far, of all forms."""
        return sum(self.counts.values())

    def add(self, name: str, rows: Rows) -> None:
        """Validate and store all rows of the form named ``name``, or none of them.

        Raises:
            InvalidInput: a row is invalid, or the execution has more than ``Form.most`` rows.
            KeyError: there is no such form.
        """
        if not rows.rows:
            return
        form = self.forms[name]
        values, issues = dict[str, Values](), list[FieldIssue]()
        for column in form.columns:
            result = values[column.name] = column.values(rows.column(column.name), self.books)
            wrong = ~column.sound(result)
            if wrong.any() and not column.required and not column.empty:
                wrong &= ~rows.missing(column.name)
            issues += rows.issues(column.name, wrong, column.accepted)
            if column.ascending:
                early = (result >= 0) & (result < np.concatenate([[self._last[column.name]], result[:-1]]))
                issues += rows.issues(column.name, early, f"must not be less than the {column.name} before it")
        refuse([*issues, *self.rules(name, values, rows)])
        room = form.most - self.counts[name]
        if rows.rows > room:
            message = f"an execution holds at most {form.most:,} {name}: upload it in parts"
            raise rejection([FieldIssue(rows.where(room), message, None)])
        self.keep(name, values, rows)
        self.counts[name] += rows.rows
        self._last |= {column.name: int(values[column.name][-1]) for column in form.columns if column.ascending}

    def take(self, rows: Rows, form: str | None = None) -> None:
        """Add rows of the form named ``form``; None: of the form that each row's columns show.

        Raises:
            InvalidInput: a row is invalid, its form is unclear, or the execution gets too long.
        """
        for name, part in (self._by_form(rows) if form is None else {form: rows}).items():
            self.add(name, part)

    def sample(self, name: str | None) -> Sample:
        """Return the collected execution, named ``name``, or after the digest of its content if that is None or "".

        Raises:
            InvalidInput: no row was collected, or the name is invalid.
        """
        if not self.count:
            raise rejection([FieldIssue("", f"holds nothing: each row {self._words}", None)])
        issue = name_issue(name) if name else None
        if issue is not None:
            raise rejection([issue])
        data, digest, summary = self.pack()
        return Sample(name or f"samples-{digest[:12]}", 1, data, self.count, digest, summary)

    def _by_form(self, rows: Rows) -> dict[str, Rows]:
        """Return the rows of each form by its name, recognised by the columns that have values.

        Raises:
            InvalidInput: a row fits several forms or none, or has a value in a column of another form.
        """
        if not rows.rows:
            return {}
        possible = [form for form in self.forms.values() if form.told_by in rows.columns]
        fields = {form.name: ~rows.missing(form.told_by) for form in possible if not form.rest}
        rest = ~np.any([*fields.values()], axis=0)
        own = fields | {form.name: rest for form in possible if form.rest}
        if len(possible) == 1:
            own = {possible[0].name: np.ones(rows.rows, np.bool_)}
        unclear = np.flatnonzero(np.sum([*own.values()], axis=0) != 1)[:MOST_ISSUES].tolist()
        refuse([FieldIssue(rows.where(row), self._words, None) for row in unclear])
        parts = dict[str, Rows]()
        for name, which in own.items():
            form = self.forms[name]
            for column in [one for one in rows.columns if one not in form.names and which.any()]:
                message = f"{self._words}; {column} does not belong to {form.noun}"
                refuse(rows.issues(column, which & ~rows.missing(column), message))
            if which.any():
                parts[name] = rows if which.all() else rows.take(np.flatnonzero(which).tolist())
        return parts


# Bodies that are one execution: CSV with a header, or NDJSON with an object per line.


class RowReader:
    """Reads a body that is one execution, by lines.

    Args:
        rows: parses blocks of a body (whole lines) to rows.
        collector: a new collector, which validates the rows.
        name: name of the execution; None: named after the digest of its content.
    """

    def __init__(
        self, rows: Callable[[Iterator[bytes]], Iterator[Rows]], collector: Collector, name: str | None
    ) -> None:
        self._rows, self._collector, self._name = rows, collector, name

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Read all blocks, then yield the one execution that they hold. It is never yielded as ``Refused``.

        Raises:
            InvalidInput: a line can't be parsed or is invalid for the workload (issues point to lines), there is no
                row, or the execution's name is invalid.
        """
        for rows in self._rows(blocks):
            self._collector.take(rows)
        yield self._collector.sample(self._name)


def csv_rows(forms: Sequence[Form], blocks: Iterator[bytes]) -> Iterator[Rows]:
    """Yield the rows of each block of CSV with a header; cells are text.

    Raises:
        InvalidInput: the header is missing, names an unknown column or one twice, or lacks a required one; or a line
            has another number of cells.
    """
    head, _, rest = next(blocks, b"").partition(b"\n")
    names = _header(forms, head)
    before = 1
    for block in chain([rest], blocks) if rest else blocks:
        lines = dict(filled_lines(block, before))
        rows = [_cells(line.decode("utf-8", "replace").replace("\r", "")) for line in lines.values()]
        wrong = [(number, len(row)) for number, row in zip(lines, rows, strict=True) if len(row) != len(names)]
        message = f"must have {len(names)} cells, as the header"
        refuse([FieldIssue(f"/lines/{number}", message, count) for number, count in wrong])
        if b"'" in block:
            rows = [[*map(unescape_formula, row)] for row in rows]
        cells = zip(*rows, strict=True) if rows else [()] * len(names)
        yield Rows(dict(zip(names, cells, strict=True)), _line(lines))
        before += block.count(b"\n") + 1


def _header(forms: Sequence[Form], raw: bytes) -> list[str]:
    columns = all_columns(forms)
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").rstrip("\r")
    if not text.strip():
        message = f"the body is empty; its first line must name columns of {', '.join(columns)}"
        raise rejection([FieldIssue("/lines/1", message, None)])
    names = [name.strip() for name in _cells(text)]
    accepted = f"unknown column; known: {', '.join(columns)}"
    issues = [FieldIssue(f"/lines/1/{error_value(name)}", accepted, None) for name in names if name not in columns]
    twice = dict.fromkeys(name for name in names if name in columns and names.count(name) > 1)
    issues += [FieldIssue(f"/lines/1/{name}", "column given twice", None) for name in twice]
    if not any(form.fits(names) for form in forms):
        issues.append(FieldIssue("/lines/1", f"rows {words(forms)}", error_value(text)))
    refuse(issues)
    return names


def object_rows(decoder: msgspec.json.Decoder[Any], names: Sequence[str], blocks: Iterator[bytes]) -> Iterator[Rows]:
    """Yield the rows of each block of NDJSON; ``decoder`` decodes a line to an object with attributes ``names``.

    Raises:
        InvalidInput: a line is invalid, or has a duplicate member.
    """
    before = 0
    for block in blocks:
        lines = dict(filled_lines(block, before))
        rows = []
        for number, line in lines.items():
            try:
                rows.append(decoder.decode(line))
            except MALFORMED as error:
                issue = first_issue(line, error)
                raise rejection([issue._replace(pointer=f"/lines/{number}{issue.pointer}")]) from error
        columns = {name: [getattr(row, name) for row in rows] for name in names}
        if more_names(block, _members(columns)):  # a line names a member twice: each is looked at
            twice = [(number, duplicate_member(line, 0)) for number, line in lines.items()]
            refuse([issue._replace(pointer=f"/lines/{number}{issue.pointer}") for number, issue in twice if issue])
        yield Rows(columns, _line(lines))
        before += block.count(b"\n") + 1


def _line(lines: Iterable[int]) -> Callable[[int], str]:
    numbers = [*lines]
    return lambda row: f"/lines/{numbers[row]}"


def _cells(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return [line]  # of another width than the header, or a name that is not known


def _members(columns: Mapping[str, Sequence[Any]]) -> int:
    return sum(len(values) - values.count(None) for values in columns.values())


# Bodies of executions in JSON: one per line, or all in ``{"samples": […]}``.


One = Callable[[bytes | msgspec.Raw, int], Sample | Refused]
"""Function that reads one execution from its JSON and its number in the body, from 1."""


class NdjsonReader:
    """Reads a body of executions in JSON, one per line; ``one`` reads each from its bytes and line number."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Yield each line's execution or its refusal, in order, without blank lines; raises what ``one`` raises."""
        before = 0
        for block in blocks:
            for number, line in filled_lines(block, before):
                yield self._one(line, number)
            before += block.count(b"\n") + 1


class _Samples(msgspec.Struct, forbid_unknown_fields=True):
    samples: list[msgspec.Raw]


_samples = msgspec.json.Decoder(_Samples)


class JsonReader:
    """Reads a JSON document ``{"samples": […]}`` of executions; ``one`` reads each from its bytes and number.

    It holds the whole body in memory; the caller bounds its size."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Yield each execution or its refusal, in order.

        Raises:
            InvalidInput: the body isn't JSON, or isn't an object with the list ``samples`` once and nothing else.
        """
        body = b"\n".join(blocks)
        try:
            samples = _samples.decode(body).samples
        except MALFORMED as error:
            raise rejection([first_issue(body, error)]) from error
        if body.count(b'"samples"') > 1 and repeated_place(body) == "/samples":
            raise invalid("/samples", TWICE, None)
        for number, raw in enumerate(samples, start=1):
            yield self._one(raw, number)


def malformed(data: bytes, number: int, error: Exception) -> Refused:
    """Return the refusal of execution ``number`` whose decoder raised ``error``, one of ``MALFORMED``.

    Its name is "" if it can't be read from ``data``."""
    try:
        document = json.loads(data) if len(data) <= LONGEST_WALKED else None
    except (ValueError, RecursionError):
        document = None
    name = document.get("execution") if isinstance(document, dict) else None
    return Refused(name if isinstance(name, str) else "", number, first_issue(data, error))


def duplicate_member(data: bytes | msgspec.Raw, members: int) -> FieldIssue | None:
    """Return the issue of an execution whose JSON has an object with a duplicate member; None: there is none.

    ``members`` is the number of members that the decoder read."""
    place = repeated_place(bytes(data), members)
    return None if place is None else FieldIssue(place, TWICE, None)


class RowCodec(SampleCodec):
    """Codec of executions that consist of rows of several forms (sets of columns).

    ``row_formats`` and ``row_exports`` make its formats and exports."""

    @abstractmethod
    def rows(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the rows of an execution's stored bytes as JSON objects, which lack unknown values."""


def row_formats(
    kind: str, forms: Sequence[Form], collector: Callable[[Any], Collector], example: str
) -> dict[str, Format]:
    """Return the formats JSON, NDJSON and CSV of a kind with a ``RowCodec``, by media type.

    Args:
        kind: name of the kind.
        forms: forms of rows with bounds that don't depend on a workload, for parsing and the documentation.
        collector: function that makes a new collector from a layout.
        example: example of a CSV body.
    """
    fields: list[Any] = [("execution", str)]
    for form in forms:
        rows = list.__class_getitem__(struct(form.name, form.columns, form.required))
        fields.append((form.name, rows, msgspec.field(default_factory=list)))
    body = msgspec.json.Decoder(msgspec.defstruct("Execution", fields, forbid_unknown_fields=True))
    columns = all_columns(forms)
    line = msgspec.json.Decoder(struct("Line", columns.values()))
    *others, last = [f"{form.noun} ({', '.join(f'`{one}`' for one in form.names)})" for form in forms]
    each = f"{', '.join(others)} or {last}"
    text = f"Kind `{kind}`: one execution; each line is {each}. CSV has the same columns"
    joined = [f"`{name}`" for name, column in columns.items() if column.schema["type"] == "array"]
    between = f", with `{BETWEEN}` between the names of {' and '.join(joined)}." if joined else "."
    return {
        JSON: Format(
            lambda codec, _: JsonReader(lambda data, number: _row_sample(body, collector(codec.layout), data, number)),
            "json",
            "json",
            schema=samples_schema({form.name: {"type": "array", "items": form.schema} for form in forms}),
        ),
        NDJSON: Format(
            lambda codec, name: RowReader(partial(object_rows, line, [*columns]), collector(codec.layout), name),
            "upload",
            "json",
            named=True,
            schema={**FILE, "description": text + between},
        ),
        CSV: Format(
            lambda codec, name: RowReader(partial(csv_rows, forms), collector(codec.layout), name),
            "upload",
            "short",
            named=True,
            example=example,
        ),
    }


def _row_sample(
    decoder: msgspec.json.Decoder[Any], collector: Collector, data: bytes | msgspec.Raw, number: int
) -> Sample | Refused:
    """Return an execution from its JSON, or its refusal with the first issue; ``number`` is its number in the body."""
    try:
        body = decoder.decode(data)
    except MALFORMED as error:
        return malformed(bytes(data), number, error)
    parts = dict[str, Rows]()
    for name, form in collector.forms.items():
        listed = getattr(body, name)
        columns = {column: [getattr(row, column) for row in listed] for column in form.names}
        parts[name] = Rows(columns, f"/{name}/{{}}".format)
    members = 1 + sum(bool(rows.rows) + _members(rows.columns) for rows in parts.values())
    issue = name_issue(body.execution) or duplicate_member(data, members)
    if issue is not None:
        return Refused(body.execution, number, issue)
    try:
        for name, rows in parts.items():
            collector.take(rows, name)
        return collector.sample(body.execution)._replace(line=number)
    except InvalidInput as error:
        return Refused(body.execution, number, error.errors[0])


def row_exports(forms: Sequence[Form]) -> dict[str, Export]:
    """Return the exports CSV and NDJSON of one execution of a ``RowCodec``, by media type."""
    columns = all_columns(forms)
    lists = [name for name, column in columns.items() if column.schema["type"] == "array"]

    def lines(codec: Any, execution: ExecutionColumns) -> Iterator[str]:
        write = csv_writer()
        for row in codec.rows(execution.data):
            for name in lists:
                row[name] = BETWEEN.join(row.get(name) or ())
            yield write(map(row.get, columns))

    def objects(codec: Any, execution: ExecutionColumns) -> Iterator[str]:
        return (json.dumps(row) + "\n" for row in codec.rows(execution.data))

    return {
        CSV: Export(lambda _: ",".join(columns) + "\n", lines, single=True),
        NDJSON: Export(lambda _: "", objects, single=True),
    }


def samples_schema(fields: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """Return the JSON schema of a body of executions with the properties ``fields`` beside ``execution``."""
    name = {"type": "string", "minLength": 1, "maxLength": MAXIMUM_NAME}
    sample = {"type": "object", "required": ["execution", *required], "properties": {"execution": name, **fields}}
    samples = {"type": "array", "items": sample}
    return {"type": "object", "required": ["samples"], "properties": {"samples": samples}}


def by_name(names: Sequence[str], counts: Sequence[int]) -> dict[str, int]:
    """Return counts by name from counts in the order of ``names``; names beyond the last count have 0."""
    return dict(zip(names, [*counts, *[0] * len(names)], strict=False))


# Executions with one report per iteration, as tables of float64.


class ReportCodec(SampleCodec, ABC):
    """Codec of executions stored as a table of little-endian float64, [n, C]: n reports with C columns.

    The JSON of one is ``{"execution": …, "reports": […]}``, one per line of NDJSON, or all as ``samples`` of a
    document. Each is accepted or refused by itself.

    Attributes:
        body: decoder of an execution's JSON to an object with ``execution`` and ``reports``.
    """

    tells_reports: ClassVar[bool] = True
    body: ClassVar[msgspec.json.Decoder[Any]]

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns C of the table."""

    @abstractmethod
    def table(self, reports: Sequence[Any]) -> Floats:
        """Convert n decoded reports to a table, [n, C]; raises InvalidInput with the first invalid field."""

    @abstractmethod
    def members(self, report: Any) -> int:
        """Return the least number of JSON members that a decoded report was read from, to detect duplicates."""

    @abstractmethod
    def seconds(self, table: Floats) -> float:
        """Return the duration in seconds of an execution, given its table [n, C]."""

    def unpack(self, data: bytes) -> Floats:
        """Return the table [n, C] of stored bytes; raises ValueError for bytes of another length."""
        return np.frombuffer(data, "<f8").reshape(-1, self.width)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Return the summary in lists of an execution's stored bytes: its duration, ``seconds``."""
        return {"seconds": self.seconds(self.unpack(data))}

    def pack(self, name: str, line: int, table: Floats) -> Sample:
        """Return the sample of a table [n, C], named ``name``; ``line`` is its number in the body."""
        return tabular(name, line, table, {"seconds": self.seconds(table)})

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """Return the execution in JSON ``data``, or its refusal with the first issue; ``number``: place in the body."""
        try:
            body = self.body.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        issue = duplicate_member(data, 2 + sum(map(self.members, body.reports))) or name_issue(body.execution)
        if issue is not None:
            return Refused(body.execution, number, issue)
        try:
            return self.pack(body.execution, number, self.table(body.reports))
        except InvalidInput as error:
            return Refused(body.execution, number, error.errors[0])


def report_formats(report: Mapping[str, Any], ndjson: str = "", example: Any = None) -> dict[str, Format]:
    """Return the formats JSON and NDJSON of a ``ReportCodec``, by media type.

    Args:
        report: JSON schema of a report.
        ndjson: description of a line of NDJSON; "": none.
        example: example of a JSON body; None: none.
    """
    schema = samples_schema({"reports": {"type": "array", "minItems": 1, "items": dict(report)}}, ["reports"])
    lines = {**FILE, "description": ndjson} if ndjson else FILE
    return {
        JSON: Format(lambda codec, _: JsonReader(codec.sample), "json", "json", schema=schema, example=example),
        NDJSON: Format(lambda codec, _: NdjsonReader(codec.sample), "upload", "json", schema=lines),
    }
