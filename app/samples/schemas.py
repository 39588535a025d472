"""What crosses the API about samples."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

REPORT_EXAMPLE = {"allocation": {"gpus": 4}, "metrics": {"iteration_seconds": 31.5}, "features": {"batch": 128}}
SAMPLE_EXAMPLE = {"execution": "run-17", "reports": [REPORT_EXAMPLE]}
CSV_EXAMPLE = (
    "execution,iteration,allocation.gpus,metric.iteration_seconds,feature.batch\n"
    "run-17,0,4,31.5,128\n"
    "run-17,1,4,30.9,128\n"
)


class Report(BaseModel):
    """What one iteration used and measured."""

    iteration: int = Field(description="Counts from 0.")
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(examples=[{"batch": 128}])


class ExecutionRead(BaseModel):
    """A stored execution."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int
    seconds: float = Field(description="Sum of `iteration_seconds`.")
    created_at: datetime
    reports: list[Report] | None = Field(default=None, description="With `reports=true`: every iteration.")


class Rejection(BaseModel):
    """An execution of which nothing was kept, and why."""

    execution: str
    line: int = Field(description="Line of the file, counting from 1; with application/json the number of the sample.")
    field: str = Field(description="JSON pointer into the report.", examples=["/metrics/iteration_seconds"])
    reason: str = Field(examples=["must be a finite number greater than 0"])
    value: Any = None


class UploadRead(BaseModel):
    """What became of an upload."""

    accepted: int = Field(description="Executions stored.")
    duplicate: int = Field(description="Executions that were stored already, with the same content.")
    rejected: int = Field(description="Executions of which nothing was kept.")
    iterations: int = Field(description="Iterations of the accepted executions.")
    rejections: list[Rejection] = Field(description="Why, one per rejected execution; the first 1,000.")
