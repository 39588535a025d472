"""Samples of kind ``cluster`` as they cross the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.kinds.contract.samples import FILE, ExecutionBase

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
        "nodes": {**_COUNT, "description": "Over which they are spread; as few as they fill, where missing."},
        "node_class": {"type": "string", "description": "Of the spec; may be missing where that has one."},
        "batch": {**_POSITIVE, "description": "Samples of a step, over all GPUs."},
        "seconds": {**_POSITIVE, "description": "Of a step."},
        "computing": {**_POSITIVE, "description": "Seconds of it in which gradients were computed."},
        "beside": {
            "type": "array",
            "items": _NAME,
            "maxItems": 4,
            "description": "Applications of jobs that shared its nodes; none: it had them alone.",
        },
    },
}
_POINT: dict[str, Any] = {
    "type": "object",
    "required": ["job", "iteration"],
    "description": "With `loss` or `metric`.",
    "properties": {
        "job": _NAME,
        "application": {**_NAME, "description": "Learns like others of that name."},
        "iteration": {**_AMOUNT, "description": "Epochs or updates done, whatever the application counts."},
        "loss": {"type": "number", "description": "The less, the better."},
        "metric": {"type": "number", "description": "The more, the better."},
        "batch": {**_POSITIVE, "description": "Samples of an update, over all GPUs."},
        "noise_scale": {**_AMOUNT, "description": "Of the gradient, in samples: its variance over its square."},
    },
}
_ARRIVAL: dict[str, Any] = {
    "type": "object",
    "required": ["time", "gpus"],
    "properties": {
        "time": {"type": ["number", "string"], "description": "Seconds, since 1970 or a start; or RFC 3339, UTC."},
        "queue": {"type": "string", "description": "The least urgent, where missing."},
        "application": _NAME,
        "gpus": {**_COUNT, "description": "That it asked for."},
        "data": {**_AMOUNT, "description": "Size of its data, in one unit for all of an application."},
        "duration": {**_AMOUNT, "description": "Seconds that it ran on them."},
    },
}
NDJSON_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `cluster`: one execution, a measured step (`application`, `gpus`, `nodes`, `node_class`, "
    "`batch`, `seconds`, `computing`, `beside`), a point of a learning curve (`job`, `application`, `iteration`, "
    "`loss` or `metric`, `batch`, `noise_scale`) or a job that came (`time`, `queue`, `application`, `gpus`, `data`, "
    "`duration`) per line; the same as columns in CSV, the names of `beside` with `;` between them.",
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
    """What measured steps come to."""

    count: int
    seconds: float = Field(description="Sum of what they took.")


class CurvesRead(BaseModel):
    """What learning curves come to."""

    jobs: int
    points: int


class ArrivalsRead(BaseModel):
    """What a log of jobs comes to."""

    count: int
    of_queues: dict[str, int] = Field(description="How many of each queue.")
    start: float = Field(description="When the first came: seconds since 1970, UTC, or since a start of its own.")
    span_seconds: float = Field(description="From the first to the last.")
    mean_gpus: float = Field(description="That they asked for.")
    mean_duration: float | None = Field(description="Seconds; null where none is known.")


class ClusterExecution(ExecutionBase):
    """A stored execution; iterations count its rows, seconds those of steps and the span of its log of jobs."""

    kind: Literal["cluster"]
    applications: list[str] = Field(description="That it names; at most the first hundred.")
    steps: StepsRead | None = Field(default=None, description="Its measured steps; null: it has none.")
    curves: CurvesRead | None = Field(default=None, description="Its learning curves; null: it has none.")
    arrivals: ArrivalsRead | None = Field(default=None, description="Its log of jobs; null: it has none.")
