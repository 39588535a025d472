"""The contract of a sample codec: how executions of workloads of one kind are read, stored, listed and exported.

Storing, counting, listing and paging are the same for all kinds and stand in ``app.samples``; what most codecs share
stands in ``app.kinds.records``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from pydantic import BaseModel, Field

from app.kinds.contract.inputs import Reader, Sample

FILE: Mapping[str, Any] = {"type": "string", "format": "binary"}  # generated clients send it as it is


class Stored(Protocol):
    """An execution as it is stored: the columns of its row that codecs read."""

    @property
    def name(self) -> str:
        """The caller's identifier, or the run's."""
        ...

    @property
    def source(self) -> str:
        """Where it is from: `upload` or `run`."""
        ...

    @property
    def iterations(self) -> int:
        """How many it has."""
        ...

    @property
    def data(self) -> bytes:
        """Its content, as ``Sample.data``."""
        ...

    @property
    def summary(self) -> Mapping[str, Any] | None:
        """What lists show of it, as ``Sample.summary``."""
        ...

    @property
    def created_at(self) -> datetime:
        """When it was stored."""
        ...


class ExecutionBase(BaseModel):
    """A stored execution; a kind's own model adds what it shows of one, and its discriminator ``kind``."""

    execution: str = Field(description="The caller's identifier, or the run's.", examples=["run-17"])
    source: str = Field(description="`upload` or `run`.", examples=["upload"])
    iterations: int = Field(description="Number of iterations; for a trace, of tasks.")
    seconds: float = Field(description="Sum of `iteration_seconds`; for a trace, of run times.")
    created_at: datetime


class Format(NamedTuple):
    """How bodies of one media type are read.

    Attributes:
        reader: reads a body for a codec; it is given the caller's name for the execution, or None.
        limit: which of the service's limits holds for the unpacked body.
        lines: which limit holds for a line; None where the body is not read by lines.
        named: whether a body holds one execution, which the caller may name.
        schema, example: of a body, for the documentation.
        skipping: as ``reader``, but leaves out and counts invalid lines; None where lines can't be left out.
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
        head: text before all executions.
        body: pieces of text of one execution.
        single: whether a document holds one execution only.
    """

    head: Callable[[Any], str]
    body: Callable[[Any, Stored], Iterator[str]]
    single: bool = False


class SampleCodec(ABC):
    """Reads, stores, lists and exports the executions of the workload that a layout was derived from.

    Attributes:
        formats, exports: by media type.
        execution: the kind's own model of a stored execution.
        tells_reports: whether ``read`` can give every iteration as ``reports``, for which it needs the data.
    """

    formats: ClassVar[Mapping[str, Format]]
    exports: ClassVar[Mapping[str, Export]]
    execution: ClassVar[type[ExecutionBase]]
    tells_reports: ClassVar[bool] = False

    def __init__(self, layout: Any) -> None:
        self.layout = layout

    @abstractmethod
    def unpacked(self, data: bytes) -> Any:
        """The content of stored bytes, in the kind's own terms."""

    @abstractmethod
    def summary(self, data: bytes) -> Mapping[str, Any]:
        """What lists show of stored bytes, as JSON; ``Sample.summary`` is the same."""

    @abstractmethod
    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]], first: int = 0) -> Sample | None:
        """The reports of a run as an execution named after it; None where they hold nothing to learn from.

        Args:
            run: name of the execution.
            reports: one per iteration, in order and without gaps.
            first: the iteration of the first report.
        """

    def shown(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        """Fields of ``execution`` out of a summary; by default it has them as they are."""
        return summary

    def reports(self, data: bytes) -> Sequence[Mapping[str, Any]]:
        """Every iteration of stored bytes, where ``tells_reports``."""
        raise NotImplementedError

    def read(self, execution: Stored, *, reports: bool) -> Any:
        """An execution as the API answers it, an ``execution``; with every iteration if ``reports``, where possible."""
        every = {"reports": self.reports(execution.data)} if reports and self.tells_reports else {}
        return self.execution.model_validate(
            {
                "kind": self.layout.spec.kind,
                "execution": execution.name,
                "source": execution.source,
                "iterations": execution.iterations,
                "created_at": execution.created_at,
                "seconds": 0.0,
                **self.shown(execution.summary or {}),
                **every,
            }
        )
