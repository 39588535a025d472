"""Channel: destination of a loop's reports and source of its allocations, a service or this process's launcher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from .errors import StewardError
from .reaction import Contingency

Numbers = Mapping[str, float]
"""Values by name."""
Segments = Sequence[Mapping[str, Any]]
"""Parts of an iteration whose allocation changed before its end, as in a report."""


class Channel(Protocol):
    """Takes reports without blocking.

    Attributes:
        id: the run's id; empty if only the launcher knows it.
    """

    id: str

    def start(self) -> None:
        """Connect and get the first allocation; repeating it has no effect.

        Raises:
            StewardError: the service refuses the run.
            Unreachable: the service doesn't respond in time.
        """

    def expect(self, count: int) -> None:
        """Announce the run's number of iterations, including those already reported."""

    @property
    def iteration(self) -> int:
        """Number of the next report."""

    @property
    def allocation(self) -> dict[str, float]:
        """The last decided allocation: amounts by resource, in the spec's units; empty if there is none."""

    @property
    def refused(self) -> StewardError | None:
        """Why the service refuses reports; None: it accepts them, or hasn't been asked."""

    @property
    def outcome(self) -> str | None:
        """The service's judgement of the ended run (``met``, ``missed``, …); None before, or if it isn't known here."""

    @property
    def contingencies(self) -> list[Contingency]:
        """Allocations if the next iteration takes longer than expected, by ascending time."""

    def report(
        self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers, segments: Segments = ()
    ) -> Future[None]:
        """Hand over an iteration's allocation, metrics, features, and segments (its parts of different allocation);
        the future is done once the service has answered, or the report is stored.

        Raises:
            StewardError: an earlier report was refused, if refusals are raised.
        """

    def end(self, error: BaseException | None = None) -> None:
        """Send stored reports, and end the run if this channel started it: as failed or cancelled with an ``error``.
        Raises StewardError if a report or the end was refused, if refusals are raised."""

    def close(self) -> None:
        """Release threads and connections."""
