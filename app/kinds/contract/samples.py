"""The contract of a sample codec: reading, storing, listing and exporting executions of one kind.

Storage, counting and paging are common to all kinds, in ``app.samples``; code shared by most codecs is in
``app.kinds.records``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel, Field

from app.kinds.contract.inputs import Reader, Sample

FILE: Mapping[str, Any] = {"type": "string", "format": "binary"}  # generated clients send it as it is


class ExecutionColumns(Protocol):
    """Columns of a stored execution's row that codecs read."""

    @property
    def name(self) -> str:
        """Identifier given by the caller, or the run's name."""
        ...

    @property
    def source(self) -> str:
        """Origin: `upload` or `run`."""
        ...

    @property
    def iterations(self) -> int:
        """Number of iterations; of a trace, of tasks."""
        ...

    @property
    def data(self) -> bytes:
        """Serialised content in the kind's own form, as the codec's ``unpack`` reads it."""
        ...

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """Summary for lists of executions, as JSON, such as ``seconds``; None: not stored."""
        ...

    @property
    def created_at(self) -> datetime:
        """Time at which it was stored."""
        ...


class ExecutionBase(BaseModel):
    """A stored execution; a kind's own model adds what it shows of one, and its discriminator ``kind``."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    seconds: float = Field(description="Sum of `iteration_seconds`; for a trace, of run times.")
    created_at: datetime


class Format(NamedTuple):
    """Functions that read bodies of one media type.

    Attributes:
        reader: makes a reader for a codec and the caller's name for the execution (None: none given).
        limit: name of the service's size limit for the unpacked body.
        lines: name of the size limit of a line; None: not read by lines.
        named: whether a body holds a single execution, which the caller may name.
        schema: JSON schema of a body, for the documentation.
        example: example of a body, for the documentation; None: none.
        skipping: makes a reader that leaves out and counts invalid lines; None: not possible.
    """

    reader: Callable[[Any, str | None], Reader]
    limit: Literal["upload", "json", "trace"]
    lines: Literal["short", "json"] | None
    named: bool = False
    schema: Mapping[str, Any] = FILE
    example: Any = None
    skipping: Callable[[Any, str | None], Reader] | None = None

    def place(self, number: int) -> str:
        """Return the JSON pointer to execution ``number`` (from 1) of a body: a line, or a sample of a document."""
        return f"/samples/{number - 1}" if self.limit == "json" else f"/lines/{number}"


class Export(NamedTuple):
    """Functions that write executions in one media type.

    Attributes:
        head: function of the codec that returns the text before all executions.
        body: function of the codec and an execution that yields the execution's text in pieces.
        single: whether a document holds only one execution.
    """

    head: Callable[[Any], str]
    body: Callable[[Any, ExecutionColumns], Iterator[str]]
    single: bool = False


class SampleCodec(ABC):
    """Reads, stores, lists and exports the executions of one workload, given by its layout.

    Attributes:
        formats: how uploads are read, by media type.
        exports: how downloads are written, by media type.
        execution: the kind's model of a stored execution.
        tells_reports: whether ``read`` can return every iteration as ``reports``, from the stored data.
    """

    formats: ClassVar[Mapping[str, Format]]
    exports: ClassVar[Mapping[str, Export]]
    execution: ClassVar[type[ExecutionBase]]
    tells_reports: ClassVar[bool] = False

    def __init__(self, layout: Any) -> None:
        self.layout = layout

    @abstractmethod
    def unpack(self, data: bytes) -> Any:
        """Deserialise stored bytes (``Sample.data``, which are valid) to the kind's own type."""

    @abstractmethod
    def summary(self, data: bytes) -> Mapping[str, Any]:
        """Return the summary of an execution in lists, as JSON, from its stored bytes; it equals ``Sample.summary``."""

    @abstractmethod
    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """Convert the reports of a run to an execution named after it; None if they contain nothing to learn from.

        Args:
            run: name of the execution.
            reports: stored reports, one per iteration, in order and without gaps.
            first: iteration of the first report.
        """

    def summary_fields(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the kind's own fields of an ``execution`` from a summary; by default the summary itself."""
        return summary

    def reports(self, data: bytes) -> Sequence[Mapping[str, Any]]:
        """Return the report of each iteration in stored bytes; raises NotImplementedError unless ``tells_reports``."""
        raise NotImplementedError

    def read(self, execution: ExecutionColumns, *, reports: bool) -> Any:
        """Return a stored execution as the API shows it; with every iteration if ``reports`` and ``tells_reports``.

        Raises:
            ValidationError: the stored summary doesn't fit the kind's model ``execution``.
        """
        every = {"reports": self.reports(execution.data)} if reports and self.tells_reports else {}
        return self.execution.model_validate(
            {
                "kind": self.layout.spec.kind,
                "execution": execution.name,
                "source": execution.source,
                "iterations": execution.iterations,
                "created_at": execution.created_at,
                "seconds": 0.0,
                **self.summary_fields(execution.summary or {}),
                **every,
            }
        )
