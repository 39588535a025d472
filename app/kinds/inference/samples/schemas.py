"""Samples of kind ``inference`` as they cross the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.kinds.contract.samples import FILE, ExecutionBase

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
