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
