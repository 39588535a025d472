"""The contract of a desk: how the service decides for workloads of one kind.

What happens to a report is the same for all kinds and stands in ``app.runs.reporter``: it is numbered, compared with
what is there, decided, written durably with its decision, and answered. A desk says what a report *is*, what is kept of
a run between two reports, and what the answer is:

=============  ==================================================================================================
``compile``    a serving into a basis: everything that a decision needs and that no report changes
``begin``      a run's first state and decision
``decode``     a report's bytes; ``read`` makes sure that it fits the workload and the run as it stands
``answer``     reports into decisions and the states after them, several at once
``freeze``     a state as JSON; ``thaw`` gives it back, in another process too
``given``      a state that is given in full by a query, where the kind has such
=============  ==================================================================================================

States are never changed in place: a report that can't be written must leave no trace.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import msgspec

from app.decisions.shadow import Shadow
from app.workloads.snapshot import Serving

Query = dict[str, list[str]]


class Basis(Protocol):
    """A serving ready to decide with; the rest is its kind's own."""

    serving: Serving

    def __hash__(self) -> int:
        """By identity: reports of one basis are decided together."""
        ...


class Asked(NamedTuple):
    """A report that is to be answered.

    Attributes:
        state: of the run before it.
        report: as ``read`` gave it.
        targets: the run's own.
    """

    run: str
    iteration: int
    state: Any
    report: Any
    targets: Mapping[str, float]
    shadow: Shadow | None


class Answered(NamedTuple):
    """An encoded decision, and the state of the run after the report that it answers."""

    decision: bytes
    state: Any


class Desk(Protocol):
    """How the service decides for workloads of one kind.

    Attributes:
        quick: whether an answer takes so little time that it is given on the event loop, many at once.
        fields: names of a decision's fields, in order.
    """

    quick: bool
    fields: Sequence[str]

    def compile(self, serving: Serving) -> Basis:
        """What decisions for a workload rest on."""
        ...

    def begin(
        self,
        basis: Any,
        run: str,
        targets: Mapping[str, float],
        features: Mapping[str, float] | None,
        now: datetime,
    ) -> Answered:
        """The first decision of a run.

        Raises:
            Invalid, InvalidInput: targets or features that the workload hasn't.
        """
        ...

    def decode(self, body: bytes) -> Any:
        """A report of this kind; two that say the same are encoded to the same bytes by ``msgspec``, in sorted order.

        Raises:
            ValidationError: it is none; every offending field is named.
        """
        ...

    def read(self, basis: Any, state: Any, iteration: int, report: Any) -> Any:
        """A report as ``answer`` takes it.

        Raises:
            Invalid, InvalidInput: it doesn't fit the workload.
            Conflict: it doesn't fit what the run has reported before.
        """
        ...

    def answer(self, basis: Any, asked: Sequence[Asked], now: datetime) -> list[Answered]:
        """The decisions for reports of different runs of one workload, in order."""
        ...

    def freeze(self, state: Any) -> msgspec.Raw:
        """A state as JSON: an array."""
        ...

    def thaw(self, stored: list[Any]) -> Any:
        """The state whose ``freeze`` was stored."""
        ...

    def weight(self, state: Any) -> int:
        """About how many bytes a state takes in memory."""
        ...

    def given(self, basis: Any, query: Query) -> Any:
        """The state that a query gives in full, for ``answer_given``.

        Raises:
            Invalid, InvalidInput: it doesn't fit the workload, or the kind takes no such query.
        """
        ...

    def answer_given(self, basis: Any, given: Sequence[Any], now: datetime) -> list[bytes]:
        """The decisions for states that are given in full, in order."""
        ...
