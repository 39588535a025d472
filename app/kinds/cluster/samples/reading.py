"""Bodies of samples of kind ``cluster``.

CSV with a header and NDJSON hold one execution, a row or line for each measured step, point of a learning curve, or job
that came. JSON holds some: ``{"samples": [{"execution": "…", "steps": […], "curves": […], "arrivals": […]}]}``.
"""

from __future__ import annotations

import msgspec

from app.kinds.cluster.layout import Layout
from app.kinds.cluster.samples.check import ARRIVAL, COLUMNS, CURVE, NEEDED, STEP, WORDS, Collector
from app.kinds.contract.inputs import InvalidInput
from app.kinds.contract.json_samples import MALFORMED, malformed
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.row_reading import CsvReader, NdjsonReader, RowForms, listed
from app.kinds.contract.text import name_issue


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """A step that was measured."""

    application: str
    gpus: float
    batch: float
    seconds: float
    nodes: float | None = None
    node_class: str | None = None
    computing: float | None = None
    beside: list[str] | None = None


class Point(msgspec.Struct, forbid_unknown_fields=True):
    """A point of a learning curve."""

    job: str
    iteration: float
    application: str | None = None
    loss: float | None = None
    metric: float | None = None
    batch: float | None = None
    noise_scale: float | None = None


class Arrival(msgspec.Struct, forbid_unknown_fields=True):
    """A job that came."""

    time: float | str
    gpus: float
    queue: str | None = None
    application: str | None = None
    data: float | None = None
    duration: float | None = None


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One of them, as NDJSON has it."""

    application: str | None = None
    gpus: float | None = None
    nodes: float | None = None
    node_class: str | None = None
    batch: float | None = None
    beside: list[str] | None = None
    seconds: float | None = None
    computing: float | None = None
    job: str | None = None
    iteration: float | None = None
    loss: float | None = None
    metric: float | None = None
    noise_scale: float | None = None
    time: float | str | None = None
    queue: str | None = None
    data: float | None = None
    duration: float | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """An execution as JSON has it."""

    execution: str
    steps: list[Step] = []
    curves: list[Point] = []
    arrivals: list[Arrival] = []


_body = msgspec.json.Decoder(Body)
FORMS = RowForms(COLUMNS, NEEDED, WORDS, msgspec.json.Decoder(Line))


def csv_reader(layout: Layout, name: str | None) -> CsvReader:
    """Reads rows under a header."""
    return CsvReader(FORMS, Collector(layout), name)


def ndjson_reader(layout: Layout, name: str | None) -> NdjsonReader:
    """Reads an object per line."""
    return NdjsonReader(FORMS, Collector(layout), name)


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
            for part, names in (("steps", STEP), ("curves", CURVE), ("arrivals", ARRIVAL)):
                collector.take(listed(getattr(body, part), names, part))
            return collector.sample(body.execution)._replace(line=number)
        except InvalidInput as error:
            return Refused(body.execution, number, error.errors[0])
