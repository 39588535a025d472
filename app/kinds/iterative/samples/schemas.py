"""Samples of kind ``iterative`` as they cross the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.kinds.contract.samples import FILE, ExecutionBase

REPORT_EXAMPLE = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
SAMPLE_EXAMPLE = {"execution": "run-17", "reports": [REPORT_EXAMPLE]}
CSV_EXAMPLE = (
    "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
    "run-17,0,4,31.5,128\n"
    "run-17,1,4,30.9,128\n"
)
_REPORT: dict[str, Any] = {
    "type": "object",
    "required": ["allocation", "metrics"],
    "properties": {
        "iteration": {"type": "integer", "minimum": 0},
        **{
            part: {"type": "object", "additionalProperties": {"type": "number"}}
            for part in ("allocation", "metrics", "features")
        },
    },
}
_SAMPLE: dict[str, Any] = {
    "type": "object",
    "required": ["execution", "reports"],
    "properties": {
        "execution": {"type": "string", "minLength": 1, "maxLength": 255},
        "reports": {"type": "array", "minItems": 1, "items": _REPORT},
    },
}
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["samples"],
    "properties": {"samples": {"type": "array", "items": _SAMPLE}},
}
NDJSON_SCHEMA: dict[str, Any] = {**FILE, "description": "One sample per line, as JSON."}


class Report(BaseModel):
    """What one iteration used and measured."""

    iteration: int = Field(description="Counts from 0; an execution may begin later.")
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(examples=[{"batch": 128}])


class ExecutionRead(ExecutionBase):
    """A stored execution of iterations."""

    kind: Literal["iterative"]
    reports: list[Report] | None = Field(default=None, description="Every iteration, if `reports=true`.")
