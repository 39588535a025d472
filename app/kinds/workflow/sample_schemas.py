"""Samples of kind ``workflow`` as they cross the API."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.charts.text import number
from app.kinds.contract.samples import FILE, ExecutionBase
from app.kinds.workflow.formats.reading import Reading, counted
from app.kinds.workflow.formats.writing import critical_path
from app.kinds.workflow.trace import Trace

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


# What a trace comes to, in numbers.


def summary(trace: Trace) -> TraceRead:
    """Counts, spreads and sums of a trace."""
    known = ~np.isnan(trace.runtime)
    return TraceRead(
        tasks=trace.tasks,
        edges=len(trace.parents),
        users=len(trace.users),
        workflows=len(np.unique(trace.group[trace.group >= 0])),
        with_run_time=int(known.sum()),
        with_estimate=int((~np.isnan(trace.estimate)).sum()),
        with_memory=int((~np.isnan(trace.memory)).sum()),
        span_seconds=float(np.ptp(trace.submit)) if trace.tasks else 0.0,
        critical_path_seconds=critical_path(trace) if len(trace.parents) else None,
        processor_seconds=float((trace.runtime * trace.processors)[known].sum()),
        run_time_seconds=_spread(trace.runtime[known]),
        processors=_spread(trace.processors.astype(np.float64)),
        edge_bytes=float(np.nansum(trace.data)),
    )


def kept_summary(trace: Trace) -> dict[str, Any]:
    """What is kept with a trace for lists: fields of ``ExecutionRead``, as JSON."""
    return {"seconds": float(np.nansum(trace.runtime)), "trace": summary(trace).model_dump(mode="json")}


def _spread(values: NDArray[np.float64]) -> Spread | None:
    if not len(values):
        return None
    return Spread(
        smallest=float(values.min()),
        median=float(np.median(values)),
        mean=float(values.mean()),
        largest=float(values.max()),
    )


# What a trace comes to, in words.


def words(reading: Reading) -> Iterator[str]:
    """Lines for people: how many tasks, of what size, over what time, on what."""
    found = summary(reading.trace)
    yield _tasks(found, reading)
    yield _time(found, reading)
    if found.run_time_seconds is not None:
        yield f"run time    {_trace_words_spread(found.run_time_seconds, ' s')}"
    if found.processors is not None:
        yield f"processors  {_trace_words_spread(found.processors, '')}"
    if found.edges:
        yield f"edges       {found.edges:,} with {found.edge_bytes / 1e9:,.3f} GB; critical path {_seconds(found)}"
    yield from _load(found, reading)


def _tasks(found: TraceRead, reading: Reading) -> str:
    noun = "task" if found.workflows else "job"
    users = f" of {counted(found.users, 'user')}" if found.users else ""
    dropped = reading.dropped + sum(one.count for one in reading.skipped)
    left_out = f"; {dropped:,} left out" if dropped else ""
    return f"{counted(found.tasks, noun)}{users}{left_out}"


def _time(found: TraceRead, reading: Reading) -> str:
    trace = reading.trace
    since = ""
    if trace.origin and trace.tasks and abs(trace.origin + trace.submit[-1]) < 2e11:
        first = datetime.fromtimestamp(trace.origin + float(trace.submit[0]), UTC)
        since = f" from {first:%Y-%m-%d %H:%M:%S} UTC"
    return (
        f"submitted   over {found.span_seconds / 86_400:,.1f} days{since}"
        if found.span_seconds
        else "submitted   at once"
    )


def _trace_words_spread(spread: Spread, unit: str) -> str:
    parts = {"median": spread.median, "mean": spread.mean, "largest": spread.largest}
    return ", ".join(f"{name} {number(value, 6)}{unit}" for name, value in parts.items())


def _seconds(found: TraceRead) -> str:
    return f"{found.critical_path_seconds or 0.0:,.1f} s of {found.processor_seconds:,.1f} processor seconds"


def _load(found: TraceRead, reading: Reading) -> Iterator[str]:
    """What the tasks ask of the recorded machines, where that is told."""
    total = sum(reading.machines)
    if not total:
        return
    machines = f"{counted(len(reading.machines), 'machine')} with {counted(total, 'processor')}"
    load = f"; load {found.processor_seconds / (found.span_seconds * total):.1%}" if found.span_seconds else ""
    yield f"recorded on {machines}{load}"
