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
        "time": {"type": ["number", "string"], "description": "Seconds, since 1970 or a start; or RFC 3339, UTC."},
        "user": {"type": "string", "description": "May be missing where the workload has one."},
        "size": {"type": "number", "minimum": 0},
    },
}
_BATCH: dict[str, Any] = {
    "type": "object",
    "required": ["variant", "batch", "seconds"],
    "properties": {
        "variant": {"type": "string"},
        "batch": {"type": "integer", "minimum": 1},
        "server": {"type": "string", "description": "A server class; may be missing where the workload has one."},
        "cores": {"type": "number", "exclusiveMinimum": 0, "description": "Those of the class, where missing."},
        "seconds": {"type": "number", "exclusiveMinimum": 0},
    },
}
NDJSON_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `inference`: one execution, a request (`time`, `user`, `size`) or a measured batch "
    "(`variant`, `batch`, `server`, `cores`, `seconds`) per line; the same as columns in CSV.",
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
    """What a log of requests comes to."""

    count: int
    of_users: dict[str, int] = Field(description="How many of each user.")
    start: float = Field(description="When the first came: seconds since 1970, UTC, or since a start of its own.")
    span_seconds: float = Field(description="From the first to the last.")
    mean_size: float | None = Field(description="Null where sizes are not known.")


class BatchesRead(BaseModel):
    """What measured batches come to."""

    count: int
    seconds: float = Field(description="Sum of what they took.")


class InferenceExecution(ExecutionBase):
    """A stored execution; iterations count requests and batches, seconds those of batches and the span of requests."""

    kind: Literal["inference"]
    requests: RequestsRead | None = Field(default=None, description="Its log of requests; null: it has none.")
    batches: BatchesRead | None = Field(default=None, description="Its measured batches; null: it has none.")
