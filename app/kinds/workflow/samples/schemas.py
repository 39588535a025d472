"""Samples of kind ``workflow`` as they cross the API."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from app.kinds.contract.samples import FILE, ExecutionBase

SWF_EXAMPLE = (
    "; Computer: IBM SP2\n"
    "; MaxProcs: 100\n"
    "1 0 -1 97225 56 -1 -1 56 210000 -1 1 1 1 -1 -1 -1 -1 -1\n"
    "2 327952 -1 9382 80 -1 -1 80 14400 -1 1 2 2 -1 -1 -1 -1 -1\n"
)
SWF_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `workflow`: a batch log in Standard Workload Format.",
}
WFFORMAT_SCHEMA: dict[str, Any] = {
    **FILE,
    "description": "Kind `workflow`: a workflow in WfFormat 1.4 or 1.5.",
}


class Spread(BaseModel):
    """Distribution of values."""

    smallest: float
    median: float
    mean: float
    largest: float


class TraceRead(BaseModel):
    """Summary of a trace; times are in seconds."""

    tasks: int
    edges: int = Field(description="Number of parent-child pairs.")
    users: int
    workflows: int = Field(description="Number of workflows; 0: independent jobs.")
    with_run_time: int = Field(description="Tasks with a known run time.")
    with_estimate: int = Field(description="Tasks with an estimate by their user.")
    with_memory: int = Field(description="Tasks with known memory.")
    span_seconds: float = Field(description="From the first submission to the last.")
    critical_path_seconds: float | None = Field(description="Longest path through the edges; null if there are none.")
    processor_seconds: float = Field(description="Sum of run time × processors.")
    run_time_seconds: Spread | None
    processors: Spread | None
    edge_bytes: float = Field(description="Bytes transferred along all edges.")


class TraceExecution(ExecutionBase):
    """A stored trace."""

    kind: Literal["workflow"]
    trace: TraceRead | None = Field(default=None, description="Summary of the trace.")
