"""Channel: destination of a loop's reports and source of its allocations, a service or this process's launcher."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol

from .errors import StewardError

Numbers = Mapping[str, float]
"""Values by name."""


class Channel(Protocol):
    """Takes reports without blocking.

    Attributes:
        id: the run's id; empty if only the launcher knows it.
    """

    id: str

    def start(self) -> None:
        """Connect and get the first allocation; repeating it has no effect."""

    def expect(self, count: int) -> None:
        """Announce the run's number of iterations, including those already reported."""

    @property
    def iteration(self) -> int:
        """Number of the next report."""

    @property
    def allocation(self) -> dict[str, float]:
        """The last decided allocation, by resource; empty if there is none."""

    @property
    def refused(self) -> StewardError | None:
        """Why the service refuses reports; None: it accepts them, or hasn't been asked."""

    def report(self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers) -> Future[None]:
        """Hand over the allocation, metrics and features of an iteration; the future is done once answered or stored.

        Raises:
            StewardError: an earlier report was refused, if refusals are raised.
        """

    def end(self, error: BaseException | None = None) -> None:
        """Send stored reports, and end the run if this channel started it: as failed or cancelled with an ``error``."""

    def close(self) -> None:
        """Release threads and connections."""
