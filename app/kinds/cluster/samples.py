"""Samples of kind `cluster`: reading, storing and exporting logs of trainings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
import numpy as np
from pydantic import BaseModel, Field

from app.kinds.cluster import sample_columns, sample_content
from app.kinds.cluster.layout import Layout
from app.kinds.cluster.sample_columns import BESIDE, GPUS, NODES, Content, summary
from app.kinds.cluster.sample_content import ARRIVAL, BETWEEN, COLUMNS, CURVE, NEEDED, STEP, WORDS, Collector
from app.kinds.contract.inputs import Sample
from app.kinds.contract.row_reading import RowBodies, RowForms
from app.kinds.contract.samples import FILE, ExecutionBase, Export, Format, Stored, line

STEPS_EXAMPLE = "application,gpus,nodes,batch,seconds\nresnet50,4,1,512,0.41\nresnet50,8,2,512,0.27\n"
_NAME: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": 255}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 1}
_POSITIVE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0}
_AMOUNT: dict[str, Any] = {"type": "number", "minimum": 0}
_STEP: dict[str, Any] = {
    "type": "object",
    "required": ["application", "gpus", "batch", "seconds"],
    "properties": {
        "application": _NAME,
        "gpus": _COUNT,
        "nodes": {**_COUNT, "description": "Number of nodes the GPUs are spread over; default: as few as they fill."},
        "node_class": {"type": "string", "description": "Node class of the spec; optional if there is only one."},
        "batch": {**_POSITIVE, "description": "Samples per step, over all GPUs."},
        "seconds": {**_POSITIVE, "description": "Duration of a step."},
        "computing": {**_POSITIVE, "description": "Part of the step spent computing gradients."},
        "beside": {
            "type": "array",
            "items": _NAME,
            "maxItems": 4,
            "description": "Applications of jobs that shared its nodes; empty: none.",
        },
    },
}
_POINT: dict[str, Any] = {
    "type": "object",
    "required": ["job", "iteration"],
    "description": "Requires `loss` or `metric`.",
    "properties": {
        "job": _NAME,
        "application": {**_NAME, "description": "Jobs of one application are expected to learn alike."},
        "iteration": {**_AMOUNT, "description": "Epochs or updates completed, in the application's own unit."},
        "loss": {"type": "number", "description": "Lower is better."},
        "metric": {"type": "number", "description": "Higher is better."},
        "batch": {**_POSITIVE, "description": "Samples per update, over all GPUs."},
        "noise_scale": {**_AMOUNT, "description": "Gradient noise scale, in samples: variance over squared gradient."},
    },
}
_ARRIVAL: dict[str, Any] = {
    "type": "object",
    "required": ["time", "gpus"],
    "properties": {
        "time": {
            "type": ["number", "string"],
            "description": "Seconds since 1970 or another origin, or RFC 3339 in UTC.",
        },
        "queue": {"type": "string", "description": "Default: the least urgent queue."},
        "application": _NAME,
        "gpus": {**_COUNT, "description": "Number of GPUs requested."},
        "data": {**_AMOUNT, "description": "Data size, in one unit per application."},
        "duration": {**_AMOUNT, "description": "Seconds that it ran on those GPUs."},
        "samples": {
            **_AMOUNT,
            "description": "Samples that it trained on until it finished, each counted at the statistical efficiency "
            "of its initial batch.",
        },
    },
}
NDJSON_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `cluster`: one execution; each line is a measured step (`application`, `gpus`, `nodes`, "
    "`node_class`, `batch`, `seconds`, `computing`, `beside`), a point of a learning curve (`job`, `application`, "
    "`iteration`, `loss` or `metric`, `batch`, `noise_scale`) or a submitted job (`time`, `queue`, `application`, "
    "`gpus`, `data`, `duration`, `samples`). CSV has the same columns, with `;` between the names of `beside`.",
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
                    "execution": _NAME,
                    "steps": {"type": "array", "items": _STEP},
                    "curves": {"type": "array", "items": _POINT},
                    "arrivals": {"type": "array", "items": _ARRIVAL},
                },
            },
        }
    },
}


class StepsRead(BaseModel):
    """Summary of measured steps."""

    count: int
    seconds: float = Field(description="Sum of their durations.")


class CurvesRead(BaseModel):
    """Summary of learning curves."""

    jobs: int
    points: int


class ArrivalsRead(BaseModel):
    """Summary of a job log."""

    count: int
    of_queues: dict[str, int] = Field(description="Number of jobs by queue.")
    start: float = Field(description="Time of the first: seconds since 1970 UTC, or since the log's own origin.")
    span_seconds: float = Field(description="From first to last.")
    mean_gpus: float = Field(description="Mean number of GPUs requested.")
    mean_duration: float | None = Field(description="Null if no duration is known.")


class ClusterExecution(ExecutionBase):
    """A stored execution; `iterations` counts its rows, `seconds` sums steps and the span of its job log."""

    kind: Literal["cluster"]
    applications: list[str] = Field(description="Applications it contains, at most the first 100.")
    steps: StepsRead | None = Field(default=None, description="Its measured steps, if any.")
    curves: CurvesRead | None = Field(default=None, description="Its learning curves, if any.")
    arrivals: ArrivalsRead | None = Field(default=None, description="Its job log, if any.")


# Bodies of samples of kind ``cluster``.
#
# CSV with a header and NDJSON hold one execution, a row or line for each measured step, point of a learning curve, or
# job that came. JSON holds some: ``{"samples": [{"execution": "…", "steps": […], "curves": […], "arrivals": […]}]}``.


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


# Samples of kind ``cluster``: an execution is measured steps, learning curves, jobs that came, or some of each.


JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"
Row = dict[str, Any]


class ClusterSamples:
    """Executions as safetensors: see ``app.kinds.cluster.sample_columns``."""

    formats: ClassVar[Mapping[str, Format]] = BODIES.formats(JSON_SCHEMA, NDJSON_SCHEMA, STEPS_EXAMPLE)
    exports: ClassVar[Mapping[str, Export]] = {
        CSV: Export(lambda _: ",".join(COLUMNS) + "\n", lambda codec, execution: codec.as_csv(execution), single=True),
        NDJSON: Export(lambda _: "", lambda codec, execution: codec.as_ndjson(execution), single=True),
    }
    tells_reports: ClassVar[bool] = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def unpacked(self, data: bytes) -> Content:
        """Steps, curves and arrivals.

        Steps on fewer nodes than can have so many GPUs, which is refused by now, count as on as few as can: so they are
        learned from and handed out as they would be uploaded.
        """
        found = sample_columns.unpacked(data)
        steps = found.steps.copy()
        steps[:, NODES] = np.maximum(steps[:, NODES], np.ceil(steps[:, GPUS] / self.layout.capacity.max()))
        return found._replace(steps=steps)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What it comes to."""
        return summary(sample_columns.unpacked(data))

    def read(self, execution: Stored, *, reports: bool) -> ClusterExecution:  # noqa: ARG002 - exports tell all of it
        """An execution as answered: what it comes to."""
        known = execution.summary or {}
        steps, curves, arrivals = (known.get(name) for name in ("steps", "curves", "arrivals"))
        return ClusterExecution(
            kind="cluster",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            seconds=known.get("seconds", 0.0),
            created_at=execution.created_at,
            applications=known.get("applications", []),
            steps=steps and StepsRead(**steps),
            curves=curves and CurvesRead(**curves),
            arrivals=arrivals and ArrivalsRead(**{**arrivals, "of_queues": self._by_queue(arrivals["of_queues"])}),
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """What it says of steps, learning and arrivals: see ``app.kinds.cluster.sample_content``."""
        collector = sample_content.collected(self.layout, reports)
        return collector.sample(run) if collector.count else None

    def as_csv(self, execution: Stored) -> Iterator[str]:
        """An execution's rows, under a header of all columns."""
        for row in self._rows(self.unpacked(execution.data)):
            cells = row | {"beside": BETWEEN.join(row.get("beside", ()))}
            yield line(cells.get(name) for name in COLUMNS)

    def as_ndjson(self, execution: Stored) -> Iterator[str]:
        """An execution's rows as objects."""
        for row in self._rows(self.unpacked(execution.data)):
            yield json.dumps(row) + "\n"

    def _by_queue(self, counts: Sequence[int]) -> dict[str, int]:
        every = [*counts, *[0] * len(self.layout.queues)]
        return dict(zip(self.layout.queues, every, strict=False))

    def _rows(self, told: Content) -> Iterator[Row]:
        classes, names = [one.name for one in self.layout.spec.nodes], told.applications
        for values in told.steps.tolist():
            application, gpus, nodes, kind, batch, seconds, computing = values[:BESIDE]
            others = [names[int(one)] for one in values[BESIDE:] if one >= 0]
            columns = [names[int(application)], int(gpus), int(nodes), classes[int(kind)], batch, others]
            yield _said(zip(STEP, [*columns, seconds, computing], strict=True))
        for job, application, iteration, value, rises, batch, noise in told.curves.tolist():
            losses = (None, value) if rises else (value, None)
            columns = [told.jobs[int(job)], _named(names, application), iteration, *losses, batch, noise]
            yield _said(zip(CURVE, columns, strict=True))
        for time, queue, application, gpus, *others in told.arrivals.tolist():
            columns = [time, self.layout.queues[int(queue)], _named(names, application), int(gpus), *others]
            yield _said(zip(ARRIVAL, columns, strict=True))


def _named(names: Sequence[str], position: float) -> str | None:
    return names[int(position)] if position >= 0 else None


def _said(columns: Any) -> Row:
    """What is known of a row."""
    return {name: value for name, value in columns if not (value is None or value == [] or value != value)}
