"""Samples of kind `workflow`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from app.kinds.contract.inputs import FieldIssue, InvalidInput, Refused, Sample, name_issue, printable
from app.kinds.contract.samples import Export, Format, Stored
from app.kinds.workflow.formats.reading import Reading, Source, misfits, refuse
from app.kinds.workflow.formats.swf import read_swf
from app.kinds.workflow.formats.wfformat import read_wfformat
from app.kinds.workflow.formats.writing import write_swf, write_wfformat
from app.kinds.workflow.queue import Layout, from_reports
from app.kinds.workflow.sample_schemas import SWF_EXAMPLE, SWF_SCHEMA, WFFORMAT_SCHEMA, TraceExecution, kept_summary
from app.kinds.workflow.trace import Trace, compressed, packed, unpacked

# Traces: a body is one trace, in Standard Workload Format or WfFormat, and becomes one execution.


UNNAMED = "trace-"


class TraceReader:
    """Reads one trace for the nodes of a layout; ``titled``: the file names itself where the caller doesn't."""

    def __init__(
        self, reading: Callable[[Source], Reading], layout: Layout, name: str | None, *, titled: bool = False
    ) -> None:
        self._reading = reading
        self._layout = layout
        self._name = name
        self._titled = titled

    def read(self, blocks: Iterator[bytes]) -> Iterator[Sample | Refused]:
        """The trace.

        Raises:
            InvalidInput: with lines or pointers: it can't be read, or a task fits no node.
        """
        try:
            reading = self._reading(blocks)
            refuse(misfits(reading.trace, self._layout.nodes, reading.where))
        except InvalidInput as error:
            raise _invalid(error.errors) from error
        own = reading.name if self._titled else ""
        sound = kept(self._name or own, reading.trace)
        issue = name_issue(sound.execution)
        if issue is not None:
            raise _invalid([issue])
        yield sound._replace(lacks=reading.lacks, warnings=reading.warnings, skipped=reading.skipped)


def kept(name: str, trace: Trace) -> Sample:
    """A trace as it is stored, under a name; an empty one stands for a name by its content."""
    plain = packed(trace)
    digest = hashlib.sha256(plain).hexdigest()
    return Sample(name or UNNAMED + digest[:12], 1, compressed(plain), trace.tasks, digest, kept_summary(trace))


def _invalid(issues: list[FieldIssue]) -> InvalidInput:
    said = "; ".join(f"{issue.pointer or 'trace'}: {issue.message}" for issue in issues[:3])
    more = "; and more" if len(issues) > 3 else ""
    return InvalidInput(issues, printable(said) + more)


# Samples of kind ``workflow``: an execution is a trace of tasks.


SWF, WFFORMAT = "application/x-swf", "application/vnd.wfformat+json"


class TraceSamples:
    """Traces as compressed safetensors: ``app.kinds.workflow.trace``."""

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
    tells_reports: ClassVar[bool] = False

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
