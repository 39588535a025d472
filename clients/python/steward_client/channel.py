"""Where epochs are reported to, and where their allocations come from: a service, or the launcher of this process."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Protocol

from .errors import StewardError

Numbers = Mapping[str, float]
"""Figures by name."""


class Channel(Protocol):
    """Takes reports without holding anybody up.

    Attributes:
        id: the run's id; empty where the launcher alone knows it.
    """

    id: str

    def start(self) -> None:
        """Find out what the first iteration is to use; may be repeated."""

    def expect(self, count: int) -> None:
        """So many iterations there will be, those included that were reported before."""

    @property
    def iteration(self) -> int:
        """The number of the next report."""

    @property
    def allocation(self) -> dict[str, float]:
        """What was decided last, by resource; empty where nothing was."""

    @property
    def refused(self) -> StewardError | None:
        """Why reports are not taken; None: they are, or nobody was asked."""

    def report(self, iteration: int, allocation: Numbers, metrics: Numbers, features: Numbers) -> Future[None]:
        """Hand over what an iteration used and measured; the future is done once that is answered, or kept.

        Raises:
            StewardError: an earlier report was refused, where that is raised.
        """

    def end(self, error: BaseException | None = None) -> None:
        """Hand over what is kept, and end the run where it is this channel's, as failed or cancelled after an error."""

    def close(self) -> None:
        """Let go of threads and connections."""
