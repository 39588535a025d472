"""Bodies of samples of kind ``inference``.

CSV with a header and NDJSON hold one execution, a row or line for each request (``time``, ``user``, ``size``) or each
measured batch (``variant``, ``batch``, ``server``, ``cores``, ``seconds``), and are read as they come. JSON holds some:
``{"samples": [{"execution": "…", "requests": […], "batches": […]}]}``.
"""

from __future__ import annotations

import msgspec

from app.kinds.contract.row_reading import RowBodies, RowForms
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


BODIES = RowBodies(
    RowForms(COLUMNS, [{"time"}, {"variant", "batch", "seconds"}], FORMS, msgspec.json.Decoder(Line)),
    msgspec.json.Decoder(Body),
    {"requests": REQUEST, "batches": BATCHES},
    Collector,
)
