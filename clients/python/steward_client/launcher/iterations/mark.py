"""Marks of iterations, and the clock that measures by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Position = Literal["start", "end"]
SECONDS = "iteration_seconds"


@dataclass(frozen=True)
class Mark:
    """Something that tells of an iteration.

    Attributes:
        at: when, by ``time.monotonic``.
        number: the iteration, as the command counts; None: it does not.
        total: how many there are, where it is told.
        metrics, features: what was told with it.
        position: whether it stands at the iteration's start or its end.
    """

    at: float
    number: int | None = None
    total: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    position: Position = "end"


@dataclass(frozen=True)
class Iteration:
    """An iteration that has ended: ``index`` counts from 0, in the order in which they came."""

    index: int
    seconds: float
    at: float
    metrics: Mapping[str, float]
    features: Mapping[str, float]


class Clock:
    """Iterations out of marks. The same number again is the same iteration.

    Attributes:
        began: start of the command, by ``time.monotonic``.
        startup: seconds before the first iteration began; only marks at starts tell it, else it is given.
        total: how many iterations there are, once it was told.
    """

    def __init__(self, began: float, startup: float = 0.0) -> None:
        self.began, self.startup = began, startup
        self.total: int | None = None
        self.count = 0
        self._last = began + startup
        self._number: int | None = None
        self._open: Mark | None = None

    def hear(self, mark: Mark) -> Iteration | None:
        """What has ended with it."""
        if mark.number is not None and mark.number == self._number:
            return None
        self._number = mark.number
        self.total = mark.total or self.total
        if mark.position == "end":
            return self._ended(mark, mark.at)
        before, self._open = self._open, mark
        if before is None:
            self.startup = mark.at - self.began
            self._last = mark.at
            return None
        return self._ended(before, mark.at)

    def forget(self) -> None:
        """Marks come from elsewhere from now on: an iteration that has begun ends by those."""
        self._open = self._number = None

    def finish(self, at: float) -> Iteration | None:
        """The iteration that was going on when the command ended."""
        before, self._open = self._open, None
        return None if before is None else self._ended(before, at)

    def _ended(self, mark: Mark, at: float) -> Iteration:
        measured = max(at - self._last, 1e-6)
        seconds = mark.metrics.get(SECONDS, measured)
        if not self.count and mark.position == "end" and SECONDS in mark.metrics:
            self.startup = max(0.0, at - seconds - self.began)
        self._last = at
        self.count += 1
        metrics = {name: value for name, value in mark.metrics.items() if name != SECONDS}
        return Iteration(self.count - 1, seconds, at, metrics, mark.features)
