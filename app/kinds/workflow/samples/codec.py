"""Samples of kind ``workflow``: an execution is a trace of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from app.kinds.contract.reading import Sample
from app.kinds.contract.samples import Export, Format, Stored
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.swf_writing import write_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.wfformat_writing import write_wfformat
from app.kinds.workflow.layout import Layout
from app.kinds.workflow.queue.log import from_reports
from app.kinds.workflow.samples.schemas import SWF_EXAMPLE, SWF_SCHEMA, WFFORMAT_SCHEMA, TraceExecution
from app.kinds.workflow.samples.trace import TraceReader, kept
from app.kinds.workflow.samples.trace_bytes import unpacked
from app.kinds.workflow.samples.trace_summary import kept_summary
from app.kinds.workflow.trace import Trace

SWF, WFFORMAT = "application/x-swf", "application/vnd.wfformat+json"


class TraceSamples:
    """Traces as compressed safetensors: ``app.kinds.workflow.samples.trace_bytes``."""

    formats: ClassVar[Mapping[str, Format]] = {
        SWF: Format(
            lambda codec, name: TraceReader(read_swf, codec.layout, name),
            "trace",
            "short",
            named=True,
            schema=SWF_SCHEMA,
            example=SWF_EXAMPLE,
            skipping=lambda codec, name: TraceReader(partial(read_swf, skip_bad=True), codec.layout, name),
        ),
        WFFORMAT: Format(
            lambda codec, name: TraceReader(read_wfformat, codec.layout, name, titled=True),
            "trace",
            None,
            named=True,
            schema=WFFORMAT_SCHEMA,
        ),
    }
    exports: ClassVar[Mapping[str, Export]] = {
        SWF: Export(lambda _: "", lambda codec, execution: codec.as_swf(execution), single=True),
        WFFORMAT: Export(lambda _: "", lambda codec, execution: codec.as_wfformat(execution), single=True),
    }
    tells_reports = False

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def unpacked(self, data: bytes) -> Trace:
        """An execution's trace."""
        return unpacked(data)

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What its trace comes to."""
        return kept_summary(unpacked(data))

    def read(self, execution: Stored, *, reports: bool) -> TraceExecution:  # noqa: ARG002 - exports tell all tasks
        """An execution as answered: what its trace comes to."""
        return TraceExecution(
            kind="workflow",
            execution=execution.name,
            source=execution.source,
            iterations=execution.iterations,
            created_at=execution.created_at,
            **(execution.summary or {}),
        )

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:  # noqa: ARG002
        """The tasks that have ended in the run."""
        log = from_reports(self.layout, reports)
        return None if log is None else kept(run, log.trace)

    def as_swf(self, execution: Stored) -> Iterator[str]:
        """A trace in Standard Workload Format."""
        return write_swf(unpacked(execution.data), name=execution.name, machine=int(self.layout.nodes.processors.sum()))

    def as_wfformat(self, execution: Stored) -> Iterator[str]:
        """A trace in WfFormat."""
        return write_wfformat(unpacked(execution.data), name=execution.name)
