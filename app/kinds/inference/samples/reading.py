"""Bodies of samples of kind ``inference``.

CSV with a header and NDJSON hold one execution, a row or line for each request (``time``, ``user``, ``size``) or each
measured batch (``variant``, ``batch``, ``server``, ``cores``, ``seconds``), and are read as they come. JSON holds some:
``{"samples": [{"execution": "…", "requests": […], "batches": […]}]}``.
"""

from __future__ import annotations

import msgspec

from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.json_samples import MALFORMED, malformed
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.row_reading import CsvReader, NdjsonReader, RowForms, listed
from app.kinds.contract.text import name_issue
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.check import BATCHES, COLUMNS, FORMS, REQUEST, Collector


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


_body = msgspec.json.Decoder(Body)


FORMS_OF_ROWS = RowForms(COLUMNS, [{"time"}, {"variant", "batch", "seconds"}], FORMS, msgspec.json.Decoder(Line))


def csv_reader(layout: Layout, name: str | None) -> CsvReader:
    """Reads rows under a header."""
    return CsvReader(FORMS_OF_ROWS, Collector(layout), name)


def ndjson_reader(layout: Layout, name: str | None) -> NdjsonReader:
    """Reads an object per line."""
    return NdjsonReader(FORMS_OF_ROWS, Collector(layout), name)


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
            collector.take(listed(body.requests, REQUEST, "requests"))
            collector.take(listed(body.batches, BATCHES, "batches"))
            return collector.sample(body.execution)._replace(line=number)
        except InvalidInput as error:
            return Refused(body.execution, number, error.errors[0])
