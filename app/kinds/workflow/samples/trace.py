"""Traces: a body is one trace, in Standard Workload Format or WfFormat, and becomes one execution."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from app.kinds.contract.inputs import FieldIssue, InvalidInput
from app.kinds.contract.reading import Refused, Sample
from app.kinds.contract.text import name_issue, printable
from app.kinds.workflow.formats.check import misfits
from app.kinds.workflow.formats.reading import Reading, refuse
from app.kinds.workflow.formats.source import Source
from app.kinds.workflow.layout import Layout
from app.kinds.workflow.samples.trace_bytes import compressed, packed
from app.kinds.workflow.samples.trace_summary import kept_summary
from app.kinds.workflow.trace import Trace

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
