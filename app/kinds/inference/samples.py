"""Samples of kind `inference`: reading, storing and exporting logs of requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from pydantic import BaseModel, Field

from app.kinds.contract.inputs import Sample
from app.kinds.contract.row_reading import RowBodies, RowForms
from app.kinds.contract.samples import FILE, MICRO, ExecutionBase, Export, Format, Rows, Stored
from app.kinds.inference import sample_content
from app.kinds.inference.layout import Layout
from app.kinds.inference.sample_check import BATCHES, COLUMNS, FORMS, REQUEST, Collector, summary
from app.kinds.inference.sample_content import Content, batches_of, requests_of, run_batches, run_requests

# Bodies of samples of kind ``inference``.
#
# CSV with a header and NDJSON hold one execution, a row or line for each request (``time``, ``user``, ``size``) or each
# measured batch (``variant``, ``batch``, ``server``, ``cores``, ``seconds``), and are read as they come. JSON holds
# some: ``{"samples": [{"execution": "…", "requests": […], "batches": […]}]}``.


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


# Samples of kind ``inference`` as they cross the API.


LOG_EXAMPLE = "time,user,size\n1700000000.25,mobile,1\n1700000000.31,web,4\n"
_REQUEST: dict[str, Any] = {
    "type": "object",
    "required": ["time"],
    "properties": {
        "time": {
            "type": ["number", "string"],
            "description": "Seconds since 1970 or another origin, or RFC 3339 in UTC.",
        },
        "user": {"type": "string", "description": "Optional if the workload has only one user."},
        "size": {"type": "number", "minimum": 0},
    },
}
_BATCH: dict[str, Any] = {
    "type": "object",
    "required": ["variant", "batch", "seconds"],
    "properties": {
        "variant": {"type": "string"},
        "batch": {"type": "integer", "minimum": 1},
        "server": {"type": "string", "description": "Server class; optional if the workload has only one."},
        "cores": {"type": "number", "exclusiveMinimum": 0, "description": "Default: the cores of the server class."},
        "seconds": {"type": "number", "exclusiveMinimum": 0},
    },
}
NDJSON_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `inference`: one execution; each line is a request (`time`, `user`, `size`) or a measured "
    "batch (`variant`, `batch`, `server`, `cores`, `seconds`). CSV has the same columns.",
}
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {
        "samples": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["execution"],
                "properties": {
                    "execution": {"type": "string", "minLength": 1, "maxLength": 255},
                    "requests": {"type": "array", "items": _REQUEST},
                    "batches": {"type": "array", "items": _BATCH},
                },
            },
        }
    },
}


class RequestsRead(BaseModel):
    """Summary of a request log."""

    count: int
    of_users: dict[str, int] = Field(description="Number of requests by user.")
    start: float = Field(description="Time of the first: seconds since 1970 UTC, or since the log's own origin.")
    span_seconds: float = Field(description="From first to last.")
    mean_size: float | None = Field(description="Null if sizes are unknown.")


class BatchesRead(BaseModel):
    """Summary of measured batches."""

    count: int
    seconds: float = Field(description="Sum of their durations.")


class InferenceExecution(ExecutionBase):
    """A stored execution; `iterations` counts requests and batches, `seconds` sums batches and the span of requests."""

    kind: Literal["inference"]
    requests: RequestsRead | None = Field(default=None, description="Its request log, if any.")
    batches: BatchesRead | None = Field(default=None, description="Its measured batches, if any.")


# Samples of kind ``inference``: an execution is measured batches, a log of requests, or, from a run, both.


JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
Row = dict[str, Any]


class InferenceSamples:
    """Executions as safetensors: see ``app.kinds.inference.sample_content``."""

    formats: ClassVar[Mapping[str, Format]] = BODIES.formats(JSON_SCHEMA, NDJSON_SCHEMA, LOG_EXAMPLE)
    exports: ClassVar[Mapping[str, Export]] = {
        CSV: Export(lambda _: ",".join(COLUMNS) + "\n", lambda codec, execution: codec.as_csv(execution), single=True),
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_ndjson(execution), single=True),
    }
    tells_reports: ClassVar[bool] = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def unpacked(self, data: bytes) -> Content:
        """An execution's batches and requests."""
        return sample_content.unpacked(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What it comes to."""
        return summary(data)

    def read(self, execution: Stored, *, reports: bool) -> InferenceExecution:  # noqa: ARG002 - exports tell all of it
        """An execution as answered: what it comes to."""
        known = execution.summary or {}
        log, batches = known.get("requests"), known.get("batches")
        return InferenceExecution(
            kind="inference",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            seconds=known.get("seconds", 0.0),
            created_at=execution.created_at,
            requests=log and RequestsRead(**{**log, "of_users": self._by_user(log["of_users"])}),
            batches=batches and BatchesRead(**batches),
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """The requests that arrived, and the batches that the run measured: see ``run_batches``."""
        requests, batches = run_requests(self.layout, reports), run_batches(self.layout, reports)
        if not requests["time"] and not batches["seconds"]:
            return None
        collector = Collector(self.layout)
        collector.take(Rows(requests, lambda row: f"/arrived/{row}"))
        collector.take(Rows(batches, lambda row: f"/finished/{row}"))
        return collector.sample(run)

    def as_csv(self, execution: Stored) -> Iterator[str]:
        """An execution's rows, under a header of all columns."""
        for row in self._rows(execution.data):
            yield ",".join(str(row.get(name, "")) for name in COLUMNS) + "\n"

    def as_ndjson(self, execution: Stored) -> Iterator[str]:
        """An execution's rows as objects."""
        for row in self._rows(execution.data):
            yield json.dumps(row) + "\n"

    def _by_user(self, counts: Sequence[int]) -> dict[str, int]:
        every = [*counts, *[0] * len(self.layout.users)]
        return dict(zip(self.layout.users, every, strict=False))

    def _rows(self, data: bytes) -> Iterator[Row]:
        users, variants, servers = self.layout.users, self.layout.variants, self.layout.servers
        for piece in requests_of(data):
            for time, user, size in zip(*(column.tolist() for column in piece), strict=True):
                sized = {} if np.isnan(size) else {"size": size}
                yield {"time": time / MICRO, "user": users[user], **sized}
        for variant, batch, server, cores, seconds in batches_of(data).tolist():
            names = {"variant": variants[int(variant)], "batch": int(batch), "server": servers[int(server)]}
            yield {**names, "cores": cores, "seconds": seconds}
