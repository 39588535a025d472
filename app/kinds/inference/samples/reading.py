"""Bodies of samples of kind ``inference``.

CSV with a header and NDJSON hold one execution, a row or line for each request (``time``, ``user``, ``size``) or each
measured batch (``variant``, ``batch``, ``server``, ``cores``, ``seconds``), and are read as they come. JSON holds some:
``{"samples": [{"execution": "…", "requests": […], "batches": […]}]}``.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.json_samples import MALFORMED, malformed
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.text import name_issue, printable
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.check import BATCHES, COLUMNS, FORMS, REQUEST, Collector, Rows, refused
from app.kinds.inference.samples.content import Packed
from app.kinds.inference.samples.summary import summary

UNNAMED = "samples-"


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """A request that arrived."""

    time: float | str
    user: str | None = None
    size: float | None = None


class Batch(msgspec.Struct, forbid_unknown_fields=True):
    """A batch that was measured."""

    variant: str
    batch: float
    seconds: float
    server: str | None = None
    cores: float | None = None


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """Either of them, as NDJSON has it."""

    time: float | str | None = None
    user: str | None = None
    size: float | None = None
    variant: str | None = None
    batch: float | None = None
    server: str | None = None
    cores: float | None = None
    seconds: float | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """An execution as JSON has it."""

    execution: str
    requests: list[Request] = []
    batches: list[Batch] = []


_lines = msgspec.json.Decoder(Line)
_body = msgspec.json.Decoder(Body)


class StreamedReader:
    """Reads one execution by lines; a part says what they are."""

    def __init__(self, layout: Layout, name: str | None) -> None:
        self._layout, self._name = layout, name

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """The execution.

        Raises:
            InvalidInput: with lines: what can't be read, or is not of this workload.
        """
        collector = Collector(self._layout)
        for rows in self.rows(blocks):
            collector.take(rows)
        yield kept(self._name, collector.finish(), collector.count)

    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """The body's rows, many at a time."""
        raise NotImplementedError


class CsvReader(StreamedReader):
    """Reads rows under a header."""

    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """See ``StreamedReader``."""
        head, _, rest = next(blocks, b"").partition(b"\n")
        names = _header(head)
        before = 1
        for block in chain([rest], blocks) if rest else blocks:
            lines = block.decode("utf-8", "replace").replace("\r", "").split("\n")
            filled = [i for i, line in enumerate(lines) if line and not line.isspace()]
            cells = [_cells(lines[i]) for i in filled]
            _check_widths(cells, len(names), [before + 1 + i for i in filled])
            columns = zip(*cells, strict=True) if cells else [()] * len(names)
            yield Rows(dict(zip(names, columns, strict=True)), _line(filled, before))
            before += len(lines)


class NdjsonReader(StreamedReader):
    """Reads an object per line."""

    def rows(self, blocks: Iterator[bytes]) -> Iterator[Rows]:
        """See ``StreamedReader``."""
        before = 0
        for block in blocks:
            lines = block.split(b"\n")
            filled = [i for i, line in enumerate(lines) if line and not line.isspace()]
            found = [_decoded(lines[i], before + 1 + i) for i in filled]
            yield Rows({name: [getattr(one, name) for one in found] for name in COLUMNS}, _line(filled, before))
            before += len(lines)


class BodyReader:
    """Reads one execution out of its JSON."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout

    def sample(self, data: bytes | msgspec.Raw, number: int) -> Sample | Refused:
        """The execution, or the first thing that is wrong with it."""
        try:
            body = _body.decode(data)
        except MALFORMED as error:
            return malformed(bytes(data), number, error)
        issue = name_issue(body.execution)
        if issue is not None:
            return Refused(body.execution, number, issue)
        collector = Collector(self._layout)
        try:
            collector.take(_listed(body.requests, REQUEST, "requests"))
            collector.take(_listed(body.batches, BATCHES, "batches"))
            return kept(body.execution, collector.finish(), collector.count)._replace(line=number)
        except InvalidInput as error:
            return Refused(body.execution, number, error.errors[0])


def kept(name: str | None, made: Packed, count: int) -> Sample:
    """An execution under a name; without one it is called by its content.

    Raises:
        InvalidInput: it can't be called that.
    """
    issue = name_issue(name) if name else None
    if issue is not None:
        raise refused([issue])
    return Sample(name or UNNAMED + made.digest[:12], 1, made.data, count, made.digest, summary(made.data))


def _listed(rows: Sequence[Any], names: Sequence[str], part: str) -> Rows:
    columns = {name: [getattr(one, name) for one in rows] for name in names}
    return Rows(columns, lambda row: f"/{part}/{row}")


def _line(filled: Sequence[int], before: int) -> Any:
    return lambda row: f"/lines/{before + 1 + filled[row]}"


def _header(raw: bytes) -> list[str]:
    """Names of the columns.

    Raises:
        InvalidInput: one is unknown or given twice, or they make neither form.
    """
    text = raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").rstrip("\r")
    names = [name.strip() for name in _cells(text)]
    known = f"unknown column; known: {', '.join(COLUMNS)}"
    issues = [FieldIssue(f"/lines/1/{printable(name[:80])}", known, None) for name in names if name not in COLUMNS]
    twice = dict.fromkeys(name for name in names if name in COLUMNS and names.count(name) > 1)
    issues += [FieldIssue(f"/lines/1/{name}", "column given twice", None) for name in twice]
    if "time" not in names and not {"variant", "batch", "seconds"} <= set(names):
        issues.append(FieldIssue("/lines/1", f"rows {FORMS}", printable(text[:80])))
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


def _decoded(line: bytes, number: int) -> Line:
    try:
        return _lines.decode(line)
    except MALFORMED as error:
        issue = malformed(line, number, error).issue
        raise refused([issue._replace(pointer=f"/lines/{number}{issue.pointer}")]) from error
