"""Marks of iterations, and the clock that measures by them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

Position = Literal["start", "end", "done"]
SECONDS = "iteration_seconds"
MOST_ITERATIONS, MOST_ITERATIONS_OF_A_BAR = 10_000, 1_000
"""A counter with a higher total is counted in so many blocks of steps: each iteration is reported to the service."""


@dataclass(frozen=True)
class Mark:
    """A sign of an iteration.

    Attributes:
        at: when, by ``time.monotonic``.
        number: of the iteration, as the command counts; None: it does not. With ``done``: of the steps that are done
            since the bar's first frame.
        total: how many there are, where the command says it.
        metrics, features: values that came with it.
        position: whether it stands at the iteration's start or end; ``done``: a bar, which says how many are done.
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
    """Iterations out of marks; each is counted once.

    The same number again is the same iteration. A number below the last one is a look back ("best epoch: 17") and
    counts nothing, unless it is as low as the first: then the command counts anew. Of a counter that says its total, a
    number that is further on by several ends that many iterations, at even distances. If such a counter goes from 0 to
    its total, the 0 stands before the first iteration.

    Attributes:
        total: how many iterations there are, once that is known; None again if more than that have come.
        count: how many have ended.

    Args:
        iterations: of the workload, where it is registered: a counter with that total is not counted in blocks.
    """

    def __init__(self, iterations: int | None = None) -> None:
        self.total: int | None = None
        self.count = 0
        self._registered = iterations
        self._last: float | None = None
        self._number: int | None = None
        self._first = 0
        self._stride = self._block = 1
        self._steps = self._rest = 0
        self._open: Mark | None = None
        self._blind = False

    def hear(self, mark: Mark) -> list[Iteration]:
        """The iterations that have ended with a mark."""
        before, number = self._number, mark.number
        if number is not None and before is not None and (number == before or self._first < number < before):
            return []
        self._number = number
        self._take(mark.total, MOST_ITERATIONS_OF_A_BAR if mark.position == "done" else MOST_ITERATIONS)
        if mark.position == "done":
            if before is None and not number:
                self._last = mark.at
            return self._ended(mark, mark.at, (number or 0) - (before or 0))
        goes_on = number is not None and before is not None and number > before
        self._stride = (number or 0) - (before or 0) if goes_on and mark.total else 1
        if not goes_on:
            self._first = number or 0
        surplus = goes_on and self._first == 0 and number == mark.total
        if mark.position == "start":
            opened, self._open = self._open, None if surplus else mark
            if opened is None:
                self._last = mark.at
                return []
            return self._ended(opened, mark.at, self._stride)
        return self._ended(mark, mark.at, self._stride - surplus)

    def forget(self) -> None:
        """Marks come from elsewhere from now on: an iteration that has begun ends by those."""
        self._open = self._number = None

    def finish(self, at: float) -> list[Iteration]:
        """What was going on when the command ended: an iteration, or all those up to the line that would be next."""
        opened, self._open = self._open, None
        if opened is None:
            return []
        left = self._stride
        if opened.total is not None and opened.number is not None:
            left = min(left, opened.total - (opened.number - self._first))
        return self._ended(opened, at, max(1, left))

    def _take(self, total: int | None, most: int) -> None:
        if total is None:
            return
        if not self._steps:
            self._block = 1 if total == self._registered else ceil(total / most)
        if self.count < ceil(total / self._block):
            self.total = ceil(total / self._block)

    def _ended(self, mark: Mark, at: float, steps: int) -> list[Iteration]:
        """The blocks that are whole after so many more steps, which took equally long."""
        if self._last is None:
            self._last, self._blind = at, True
        self._steps, self._rest = self._steps + steps, self._rest + steps
        sizes = [self._block] * (self._rest // self._block)
        if self._rest % self._block and self._steps == mark.total:
            sizes.append(self._rest % self._block)
        pace = max(at - self._last, 1e-6) / max(self._rest, 1)
        told = mark.metrics.get(SECONDS)
        metrics = {name: value for name, value in mark.metrics.items() if name != SECONDS}
        found = []
        for size in sizes:
            self._rest -= size
            self._last = at - pace * self._rest
            seconds = told if told and told > 0 else None if self._blind else pace * size
            found.append(Iteration(self.count, seconds, self._last, metrics, mark.features))
            self._blind = False
            self.count += 1
        if self.total is not None and self.count > self.total:
            self.total = None
        return found
