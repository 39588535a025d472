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
    """An iteration that has ended.

    Attributes:
        index: counts from 0, in the order in which they came.
        seconds: None where it is not known when it began: the command's start is before it.
        at: its end, by ``time.monotonic``.
    """

    index: int
    seconds: float | None
    at: float
    metrics: Mapping[str, float]
    features: Mapping[str, float]


class Clock:
    """Iterations out of marks. The same number again is the same iteration.

    Attributes:
        total: how many iterations there are, once it was told.
        count: how many have ended.
    """

    def __init__(self) -> None:
        self.total: int | None = None
        self.count = 0
        self._last: float | None = None
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
        told = mark.metrics.get(SECONDS)
        since = None if self._last is None else max(at - self._last, 1e-6)
        self._last = at
        self.count += 1
        metrics = {name: value for name, value in mark.metrics.items() if name != SECONDS}
        return Iteration(self.count - 1, told if told and told > 0 else since, at, metrics, mark.features)
