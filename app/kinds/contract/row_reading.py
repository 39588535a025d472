"""Rows and JSON documents of samples, read piece by piece."""

from __future__ import annotations

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, Protocol

import msgspec

from app.kinds.contract.inputs import (
    LONGEST_WALKED,
    TOO_DEEP,
    TWICE,
    FieldIssue,
    InvalidInput,
    Refused,
    Sample,
    deep_place,
    filled,
    invalid,
    more_names,
    name_issue,
    plain,
    printable,
    repeated_place,
)
from app.kinds.contract.samples import Format, Rows, refuse, refused, unescaped

# Executions as JSON, whatever an execution is: one per line, or all of them in ``{"samples": […]}``.


MALFORMED = (msgspec.DecodeError, UnicodeError, RecursionError)
One = Callable[[bytes | msgspec.Raw, int], Sample | Refused]
"""Reads one execution out of its JSON, given its number."""


class Samples(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``application/json``."""

    samples: list[msgspec.Raw]


_samples = msgspec.json.Decoder(Samples)


class NdjsonReader:
    """Reads one execution per line."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order; blank lines are skipped."""
        before = 0
        for block in blocks:
            for number, line in filled(block, before):
                yield self._one(line, number)
            before += block.count(b"\n") + 1


class JsonReader:
    """Reads a whole body at once; its size is bounded by the caller."""

    def __init__(self, one: One) -> None:
        self._one = one

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Executions in order.

        Raises:
            InvalidInput: the body isn't JSON, or has no list ``samples``.
        """
        body = b"\n".join(blocks)
        try:
            samples = _samples.decode(body).samples
        except MALFORMED as error:
            issue = first_issue(body, error)
            detail = f"{issue.pointer or 'body'}: {issue.message}"
            raise InvalidInput([issue], detail) from error
        if body.count(b'"samples"') > 1 and repeated_place(body) == "/samples":
            raise invalid("/samples", TWICE, None)
        for number, raw in enumerate(samples, start=1):
            yield self._one(raw, number)


def malformed(data: bytes, number: int, error: Exception) -> Refused:
    """An execution that a decoder refused: one of ``MALFORMED``."""
    return Refused(_guessed_name(data), number, first_issue(data, error))


def repeated(data: bytes | msgspec.Raw, members: int) -> FieldIssue | None:
    """What is wrong with an execution of whose objects so many members were read, if one of them is there twice."""
    place = repeated_place(bytes(data), members)
    return None if place is None else FieldIssue(place, TWICE, None)


def first_issue(data: bytes, error: Exception) -> FieldIssue:
    """What a decoder refused; NaN and infinities, which JSON hasn't but Python writes, are named by their field.

    Of what is longer than ``LONGEST_WALKED`` it says what the decoder said.
    """
    place = deep_place(data)
    if place is not None:
        return FieldIssue(place, TOO_DEEP, None)
    if len(data) <= LONGEST_WALKED:
        try:
            found = _not_finite(json.loads(data), "")
        except ValueError:
            return FieldIssue("", f"malformed JSON: {error}", None)
        if found is not None:
            return FieldIssue(found[0], "must be a finite number", plain(found[1]))
    message, _, path = str(error).partition(" - at `$")
    return FieldIssue(_pointer(path.rstrip("`")), message, None)


def _not_finite(value: Any, pointer: str) -> tuple[str, float] | None:
    if isinstance(value, float) and value - value != 0:
        return pointer, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _not_finite(item, f"{pointer}/{key}"))), None)


def _pointer(path: str) -> str:
    """``.reports[0].metrics`` as a JSON pointer."""
    return path.replace("[...]", "").replace("[", "/").replace("]", "").replace(".", "/")


def _guessed_name(data: bytes) -> str:
    if len(data) > LONGEST_WALKED:
        return ""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    name = document.get("execution") if isinstance(document, dict) else None
    return name if isinstance(name, str) else ""


# Bodies that are tables, whatever a row says: CSV with a header, and NDJSON with an object per line.
#
# Each holds one execution, and is read as it comes.


class RowForms(NamedTuple):
    """What rows may say.

    Attributes:
        columns: their names, all of them.
        needed: columns of which a header must have one set.
        words: that each row must hold one of them, in words.
        lines: decodes a line of NDJSON to an object with all columns as attributes.
    """

    columns: Sequence[str]
    needed: Sequence[Collection[str]]
    words: str
    lines: msgspec.json.Decoder[Any]


class Collector(Protocol):
    """Collects what an execution says."""

    def take(self, rows: Rows) -> None:
        """Some more rows, in order.

        Raises:
            InvalidInput: what is wrong with the first of those that are.
        """
        ...

    def sample(self, name: str | None) -> Sample:
        """The execution under a name; without one it is called by its content.

        Raises:
            InvalidInput: it says nothing, or can't be called that.
        """
        ...


class RowReader(ABC):
    """Reads one execution by lines; a part says what they are."""

    def __init__(self, forms: RowForms, collector: Collector, name: str | None) -> None:
        self._forms, self._collector, self._name = forms, collector, name

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """The execution.

        Raises:
            InvalidInput: with lines: what can't be read, or is not of this workload.
        """
        for rows in self.rows(blocks):
            self._collector.take(rows)
        yield self._collector.sample(self._name)

    @abstractmethod
    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """The body's rows, many at a time."""


class CsvReader(RowReader):
    """Reads rows under a header."""

    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """The body's rows, a block at a time."""
        head, _, rest = next(blocks, b"").partition(b"\n")
        names = _header(head, self._forms)
        before = 1
        for block in chain([rest], blocks) if rest else blocks:
            numbers, lines = _filled(block, before)
            cells = [_cells(line.decode("utf-8", "replace").replace("\r", "")) for line in lines]
            if b"'" in block:
                cells = [[*map(unescaped, row)] for row in cells]
            _check_widths(cells, len(names), numbers)
            columns = zip(*cells, strict=True) if cells else [()] * len(names)
            yield Rows(dict(zip(names, columns, strict=True)), _line(numbers))
            before += block.count(b"\n") + 1


class NdjsonRowReader(RowReader):
    """Reads an object per line."""

    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """The body's rows, a block at a time."""
        before = 0
        for block in blocks:
            numbers, lines = _filled(block, before)
            found = [_decoded(self._forms, line, number) for number, line in zip(numbers, lines, strict=True)]
            names = self._forms.columns
            columns = {name: [getattr(one, name) for one in found] for name in names}
            if more_names(block, _said(columns)):
                _check_once(lines, numbers)
            yield Rows(columns, _line(numbers))
            before += block.count(b"\n") + 1


def _said(columns: Mapping[str, Sequence[Any]]) -> int:
    return sum(len(values) - values.count(None) for values in columns.values())


def _filled(block: bytes, before: int) -> tuple[list[int], list[bytes]]:
    """Numbers of the lines that aren't blank, and they themselves."""
    found = list(filled(block, before))
    return [number for number, _ in found], [line for _, line in found]


def _check_once(lines: Sequence[bytes], numbers: Sequence[int]) -> None:
    """Refuse lines whose objects name a member twice; each is looked at."""
    found = [(number, repeated(line, 0)) for number, line in zip(numbers, lines, strict=True)]
    refuse([issue._replace(pointer=f"/lines/{number}{issue.pointer}") for number, issue in found if issue])


def listed(rows: Sequence[Any], names: Sequence[str], part: str) -> Rows:
    """Objects of a list in JSON, by its name."""
    columns = {name: [getattr(one, name) for one in rows] for name in names}
    return Rows(columns, lambda row: f"/{part}/{row}")


def _line(numbers: Sequence[int]) -> Any:
    return lambda row: f"/lines/{numbers[row]}"


def _header(raw: bytes, forms: RowForms) -> list[str]:
    """Names of the columns.

    Raises:
        InvalidInput: one is unknown or given twice, or they make no form.
    """
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").rstrip("\r")
    if not text.strip():
        known = ", ".join(forms.columns)
        raise refused([FieldIssue("/lines/1", f"the body is empty; its first line must name columns of {known}", None)])
    names = [name.strip() for name in _cells(text)]
    accepted = f"unknown column; known: {', '.join(forms.columns)}"
    unknown = [name for name in names if name not in forms.columns]
    issues = [FieldIssue(f"/lines/1/{printable(name[:80])}", accepted, None) for name in unknown]
    twice = dict.fromkeys(name for name in names if name not in unknown and names.count(name) > 1)
    issues += [FieldIssue(f"/lines/1/{name}", "column given twice", None) for name in twice]
    if not any(set(needed) <= set(names) for needed in forms.needed):
        issues.append(FieldIssue("/lines/1", f"rows {forms.words}", printable(text[:80])))
    if issues:
        raise refused(issues)
    return names


def _cells(line: str) -> list[str]:
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return [line]  # of another width than the header, or a name that is not known


def _check_widths(cells: Sequence[Sequence[str]], width: int, lines: Sequence[int]) -> None:
    wrong = [(line, len(row)) for line, row in zip(lines, cells, strict=True) if len(row) != width]
    if wrong:
        message = f"must have {width} cells, as the header"
        raise refused([FieldIssue(f"/lines/{line}", message, count) for line, count in wrong])


def _decoded(forms: RowForms, line: bytes, number: int) -> Any:
    try:
        return forms.lines.decode(line)
    except MALFORMED as error:
        issue = malformed(line, number, error).issue
        raise refused([issue._replace(pointer=f"/lines/{number}{issue.pointer}")]) from error


class BodyReader:
    """Reads one execution out of its JSON: an object with a name, ``execution``, and lists of rows.

    Args:
        decoder: of that object.
        parts: names of the lists, and of what their rows may say.
        collector: a new one for each execution.
    """

    def __init__(
        self,
        decoder: msgspec.json.Decoder[Any],
        parts: Mapping[str, Sequence[str]],
        collector: Callable[[], Collector],
    ) -> None:
        self._decoder, self._parts, self._collector = decoder, parts, collector

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """The execution, or the first thing that is wrong with it."""
        try:
            body = self._decoder.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        tables = [listed(getattr(body, part), names, part) for part, names in self._parts.items()]
        members = 1 + sum(bool(rows.rows) + _said(rows.columns) for rows in tables)
        issue = name_issue(body.execution) or repeated(data, members)
        if issue is not None:
            return Refused(body.execution, number, issue)
        collector = self._collector()
        try:
            for rows in tables:
                collector.take(rows)
            return collector.sample(body.execution)._replace(line=number)
        except InvalidInput as error:
            return Refused(body.execution, number, error.errors[0])


class RowBodies(NamedTuple):
    """Bodies of one execution, or some, whose parts are lists of rows.

    Attributes:
        forms: what rows may say.
        body: decodes an execution in JSON.
        parts: names of the lists in it, and of what their rows may say.
        collector: a new one for each execution, made of a layout.
    """

    forms: RowForms
    body: msgspec.json.Decoder[Any]
    parts: Mapping[str, Sequence[str]]
    collector: Callable[[Any], Collector]

    def formats(self, json: Mapping[str, Any], ndjson: Mapping[str, Any], csv: Any) -> dict[str, Format]:
        """By media type, documented by two schemas and an example."""
        return {
            "application/json": Format(self._json, "json", "json", schema=json),
            "application/x-ndjson": Format(self._ndjson, "upload", "json", named=True, schema=ndjson),
            "text/csv": Format(self._csv, "upload", "short", named=True, example=csv),
        }

    def _json(self, codec: Any, _: str | None) -> JsonReader:
        return JsonReader(BodyReader(self.body, self.parts, lambda: self.collector(codec.layout)).sample)

    def _ndjson(self, codec: Any, name: str | None) -> NdjsonRowReader:
        return NdjsonRowReader(self.forms, self.collector(codec.layout), name)

    def _csv(self, codec: Any, name: str | None) -> CsvReader:
        return CsvReader(self.forms, self.collector(codec.layout), name)
