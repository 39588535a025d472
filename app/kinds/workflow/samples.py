"""Samples of kind `workflow`: an execution is a trace of tasks, from a batch log or a workflow document."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.inputs import InvalidInput, Refused, Sample, name_issue
from app.kinds.contract.samples import FILE, ExecutionBase, Export, Format, SampleCodec
from app.kinds.records import rejection
from app.kinds.workflow.formats.reading import Reading, Source, misfits, refuse
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import critical_path, write_swf, write_wfformat
from app.kinds.workflow.queue import Layout, from_reports
from app.kinds.workflow.trace import Trace, compress, pack, unpack

SWF, WFFORMAT = "application/x-swf", "application/vnd.wfformat+json"
SWF_EXAMPLE = (
    "; Computer: IBM SP2\n"
    "; MaxProcs: 100\n"
    "1 0 -1 97225 56 -1 -1 56 210000 -1 1 1 1 -1 -1 -1 -1 -1\n"
    "2 327952 -1 9382 80 -1 -1 80 14400 -1 1 2 2 -1 -1 -1 -1 -1\n"
)


# Schemas of traces in the API.


class Spread(BaseModel):
    """The distribution of some values."""

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
    """A trace as it is stored."""

    kind: Literal["workflow"]
    trace: TraceRead | None = Field(default=None, description="Summary of the trace.")


def summary(trace: Trace) -> TraceRead:
    """Return counts, distributions and sums of a trace; times are seconds."""
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


def _spread(values: NDArray[np.float64]) -> Spread | None:
    if not len(values):
        return None
    return Spread(
        smallest=float(values.min()),
        median=float(np.median(values)),
        mean=float(values.mean()),
        largest=float(values.max()),
    )


# Readers and codec.


class TraceReader:
    """Reads one trace for the nodes of a layout.

    Args:
        reading: reader of the format.
        layout: the workload, whose nodes must hold each task.
        name: name of the execution; None or empty: from the file if ``titled``, else from the content.
        titled: whether to use the name given in the file.
    """

    def __init__(
        self, reading: Callable[[Source], Reading], layout: Layout, name: str | None, *, titled: bool = False
    ) -> None:
        self._reading = reading
        self._layout = layout
        self._name = name
        self._titled = titled

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """Yield the trace as the only execution.

        Raises:
            InvalidInput: the file can't be read, a task fits no node, or the name is invalid; issues have lines or
                pointers.
        """
        try:
            reading = self._reading(blocks)
            refuse(misfits(reading.trace, self._layout.nodes, reading.where))
        except InvalidInput as error:
            raise rejection(error.errors) from error
        sample = trace_sample(self._name or (reading.name if self._titled else ""), reading.trace)
        issue = name_issue(sample.execution)
        if issue is not None:
            raise rejection([issue])
        yield sample._replace(lacks=reading.lacks, warnings=reading.warnings, skipped=reading.skipped)


def trace_sample(name: str, trace: Trace) -> Sample:
    """Return the sample of a trace; an empty ``name`` is replaced by one from a digest of its content."""
    plain = pack(trace)
    digest = hashlib.sha256(plain).hexdigest()
    return Sample(name or f"trace-{digest[:12]}", 1, compress(plain), trace.tasks, digest, shown_in_lists(trace))


def shown_in_lists(trace: Trace) -> dict[str, Any]:
    """Return the summary of a trace for lists, as JSON: fields of ``TraceExecution``; times are seconds."""
    return {"seconds": float(np.nansum(trace.runtime)), "trace": summary(trace).model_dump(mode="json")}


class TraceSamples(SampleCodec):
    """Codec of traces as compressed safetensors."""

    formats: ClassVar[Mapping[str, Format]] = {
        SWF: Format(
            lambda codec, name: TraceReader(read_swf, codec.layout, name),
            "trace",
            "short",
            named=True,
            schema={**FILE, "description": "Kind `workflow`: a batch log in Standard Workload Format."},
            example=SWF_EXAMPLE,
            skipping=lambda codec, name: TraceReader(partial(read_swf, skip_bad=True), codec.layout, name),
        ),
        WFFORMAT: Format(
            lambda codec, name: TraceReader(read_wfformat, codec.layout, name, titled=True),
            "trace",
            None,
            named=True,
            schema={**FILE, "description": "Kind `workflow`: a workflow in WfFormat 1.4 or 1.5."},
        ),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        SWF: Export(
            lambda _: "",
            lambda codec, execution: write_swf(
                unpack(execution.data), name=execution.name, machine=int(codec.layout.nodes.processors.sum())
            ),
            single=True,
        ),
        WFFORMAT: Export(
            lambda _: "",
            lambda _, execution: write_wfformat(unpack(execution.data), name=execution.name),
            single=True,
        ),
    }
    execution: ClassVar[type[ExecutionBase]] = TraceExecution

    def unpack(self, data: bytes) -> Trace:
        """Return the trace from stored bytes; raise zlib.error or SafetensorError if they are damaged."""
        return unpack(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Return the summary of stored bytes for lists, as JSON."""
        return shown_in_lists(unpack(data))

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """Return the sample of a run's finished tasks; None if no task has finished."""
        log = from_reports(self.layout, reports)
        return None if log is None else trace_sample(run, log.trace)
