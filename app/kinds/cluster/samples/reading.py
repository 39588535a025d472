"""Bodies of samples of kind ``cluster``.

CSV with a header and NDJSON hold one execution, a row or line for each measured step, point of a learning curve, or job
that came. JSON holds some: ``{"samples": [{"execution": "…", "steps": […], "curves": […], "arrivals": […]}]}``.
"""

from __future__ import annotations

import msgspec

from app.kinds.cluster.samples.check import ARRIVAL, COLUMNS, CURVE, NEEDED, STEP, WORDS, Collector
from app.kinds.contract.row_reading import RowBodies, RowForms


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
    samples: float | None = None


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
    samples: float | None = None


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """An execution as JSON has it."""

    execution: str
    steps: list[Step] = []
    curves: list[Point] = []
    arrivals: list[Arrival] = []


BODIES = RowBodies(
    RowForms(COLUMNS, NEEDED, WORDS, msgspec.json.Decoder(Line)),
    msgspec.json.Decoder(Body),
    {"steps": STEP, "curves": CURVE, "arrivals": ARRIVAL},
    Collector,
)
