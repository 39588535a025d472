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
SWF_EXAMPLE = (
    "; Computer: IBM SP2\n"
    "; MaxProcs: 100\n"
    "1 0 -1 97225 56 -1 -1 56 210000 -1 1 1 1 -1 -1 -1 -1 -1\n"
    "2 327952 -1 9382 80 -1 -1 80 14400 -1 1 2 2 -1 -1 -1 -1 -1\n"
)


class Report(BaseModel):
    """What one iteration used and measured."""

    iteration: int = Field(description="Counts from 0.")
    allocation: dict[str, float] = Field(examples=[{"gpus": 4}])
    metrics: dict[str, float] = Field(examples=[{"iteration_seconds": 31.5}])
    features: dict[str, float] = Field(examples=[{"batch": 128}])


class Spread(BaseModel):
    """How values are spread."""

    smallest: float
    median: float
    mean: float
    largest: float


class TraceRead(BaseModel):
    """What a trace comes to; times are seconds."""

    tasks: int
    edges: int = Field(description="Pairs of parent and child.")
    users: int
    workflows: int = Field(description="Workflows that tasks belong to; 0: jobs by themselves.")
    with_run_time: int = Field(description="Tasks whose run time is known.")
    with_estimate: int = Field(description="Tasks whose user gave an estimate.")
    with_memory: int = Field(description="Tasks whose memory is known.")
    span_seconds: float = Field(description="From the first submission to the last.")
    critical_path_seconds: float | None = Field(description="Longest way through the edges; null: there are none.")
    processor_seconds: float = Field(description="Sum of run times times processors.")
    run_time_seconds: Spread | None
    processors: Spread | None
    edge_bytes: float = Field(description="Bytes that go along all edges together.")


class ExecutionRead(BaseModel):
    """A stored execution."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Its iterations; of a trace, its tasks.")
    seconds: float = Field(description="Sum of `iteration_seconds`; of a trace, of run times.")
    created_at: datetime
    reports: list[Report] | None = Field(default=None, description="With `reports=true`: every iteration.")
    trace: TraceRead | None = Field(default=None, description="Of a workload of kind `workflow`.")


class Rejection(BaseModel):
    """An execution of which nothing was kept, and why."""

    execution: str
    line: int = Field(description="Line of the file, counting from 1; with application/json the number of the sample.")
    field: str = Field(description="JSON pointer into the report.", examples=["/metrics/iteration_seconds"])
    reason: str = Field(examples=["must be a finite number greater than 0"])
    value: Any = None


class Remark(BaseModel):
    """Something in a trace that looks wrong, or was mended."""

    execution: str
    pointer: str = Field(description="Line or JSON pointer of the first or worst case.", examples=["/lines/12/runtime"])
    message: str
    value: Any = None


class UploadRead(BaseModel):
    """What became of an upload."""

    accepted: int = Field(description="Executions stored.")
    duplicate: int = Field(description="Executions that were stored already, with the same content.")
    rejected: int = Field(description="Executions of which nothing was kept.")
    iterations: int = Field(description="Iterations of the accepted executions; of traces, tasks.")
    rejections: list[Rejection] = Field(description="Why, one per rejected execution; the first 1,000.")
    lacks: list[str] = Field(default=[], description="What a trace does not say, and what that means.")
    warnings: list[Remark] = Field(default=[], description="What looks wrong in a trace, or was left out of it.")
