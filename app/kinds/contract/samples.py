"""The contract of a sample codec: how the executions of workloads of one kind are read, kept, told and handed out.

Storing, counting, listing and paging are the same for all kinds and stand in ``app.samples``. A codec is made of a
workload's layout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel, Field

from app.kinds.contract.reading import Reader, Sample

FILE: Mapping[str, Any] = {"type": "string", "format": "binary"}  # generated clients send it as it is


class Stored(Protocol):
    """An execution as it is kept."""

    @property
    def name(self) -> str:
        """The caller's identifier, or the run's."""
        ...

    @property
    def source(self) -> str:
        """`upload` or `run`."""
        ...

    @property
    def iterations(self) -> int:
        """How many it has."""
        ...

    @property
    def data(self) -> bytes:
        """What it says, as ``Sample.data``."""
        ...

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """What lists tell of it, as ``Sample.summary``."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was stored."""
        ...


class ExecutionBase(BaseModel):
    """A stored execution; a kind's own model adds what it tells of one, and its discriminator ``kind``."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    seconds: float = Field(description="Sum of `iteration_seconds`; for a trace, of run times.")
    created_at: datetime


class Format(NamedTuple):
    """How bodies of one media type are read.

    Attributes:
        reader: reads a body for a codec; it is given the name that the caller has for what is in it, or None.
        limit: which of the service's limits holds for the unpacked body.
        lines: which limit holds for a line; None where the body is not read by lines.
        named: whether a body holds one execution, which the caller may name.
        schema, example: of a body, for the documentation.
        skipping: as ``reader``, but leaves out lines that can't be right and tells so; None where none can be left out.
    """

    reader: Callable[[Any, str | None], Reader]
    limit: Literal["upload", "json", "trace"]
    lines: Literal["short", "json"] | None
    named: bool = False
    schema: Mapping[str, Any] = FILE
    example: Any = None
    skipping: Callable[[Any, str | None], Reader] | None = None

    def place(self, number: int) -> str:
        """JSON pointer to an execution of a body by ``Refused.line``, which counts lines, or samples of a document."""
        return f"/samples/{number - 1}" if self.limit == "json" else f"/lines/{number}"


class Export(NamedTuple):
    """How executions are written in one media type.

    Attributes:
        head: what stands before all of them.
        body: pieces of text of one.
        single: whether a document holds one execution only.
    """

    head: Callable[[Any], str]
    body: Callable[[Any, Stored], Iterator[str]]
    single: bool = False


class SampleCodec(Protocol):
    """How the executions of workloads of one kind are read, kept, told and handed out."""

    formats: ClassVar[Mapping[str, Format]]
    exports: ClassVar[Mapping[str, Export]]
    tells_reports: ClassVar[bool]
    """Whether ``read`` can tell all that an execution says, for which it needs its data."""

    def __init__(self, layout: Any) -> None: ...

    def unpacked(self, data: bytes) -> Any:
        """What stored bytes say, in the kind's own terms."""
        ...

    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What lists tell of stored bytes, JSON: fields of the kind's own model. ``Sample.summary`` is the same."""
        ...

    def read(self, execution: Stored, *, reports: bool) -> ExecutionBase:
        """An execution as answered, of the kind's own model; ``reports``: with all that it says, where that is told."""
        ...

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """What a run reported, in order, as an execution named by it; None where that is nothing to learn from.

        Args:
            run: name of the execution.
            reports: one per iteration, without gaps.
            first: the iteration of the first report.
        """
        ...
