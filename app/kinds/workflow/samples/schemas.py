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


class TraceExecution(ExecutionBase):
    """A stored trace."""

    kind: Literal["workflow"]
    trace: TraceRead | None = Field(default=None, description="What it comes to.")
