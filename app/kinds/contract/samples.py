"""The contract of a shelf: how the executions of workloads of one kind are read, kept, told and handed out.

Storing, counting, listing and paging are the same for all kinds and stand in ``app.samples.service`` and
``app.samples.intake``. A shelf is made of a workload's layout; ``app.samples.shelves.SHELVES`` has one for each kind.

============  ===================================================================================
``formats``   what uploads may be, by media type
``exports``   what samples may be handed out as, by media type, beside the pages of a list
``unpacked``  what an execution's stored bytes say
``summary``   what lists tell of stored bytes; kept with them
``read``      an execution as the API answers it
``of_run``    what a run has reported, as an execution
============  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

from app.database.tables import Execution
from app.kinds.contract.reading import Reader, Sound
from app.samples.schemas import ExecutionRead


class Format(NamedTuple):
    """How bodies of one media type are read.

    Attributes:
        reader: reads a body for a shelf; it is given the name that the caller has for what is in it, or None.
        limit: which of the service's limits holds for the unpacked body.
        lines: which limit holds for a line; None where the body is not read by lines.
        named: whether a body holds one execution, which the caller may name, and may be gzip without saying so.
    """

    reader: Callable[[Any, str | None], Reader]
    limit: Literal["upload", "json", "trace"]
    lines: Literal["short", "json"] | None
    named: bool = False


class Export(NamedTuple):
    """How executions are written in one media type.

    Attributes:
        head: what stands before all of them.
        body: pieces of text of one.
        single: whether a document holds one execution only.
    """

    head: Callable[[Any], str]
    body: Callable[[Any, Execution], Iterator[str]]
    single: bool = False


class Shelf(Protocol):
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
        """What lists tell of stored bytes, JSON: fields of ``ExecutionRead``. ``Sound.summary`` is the same."""
        ...

    def read(self, execution: Execution, *, reports: bool) -> ExecutionRead:
        """An execution with its summary as answered; ``reports``: with all that it says, where that can be told."""
        ...

    def of_run(self, run: str, reports: Sequence[Mapping[str, Any]]) -> Sound | None:
        """What a run reported, in order, as an execution named by it; None where that is nothing to learn from."""
        ...
