"""Marks (signs of iterations in reports, files or output), and the clock that turns them into timed iterations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Literal

Position = Literal["start", "end", "done"]
SECONDS = "iteration_seconds"
MOST_ITERATIONS, MOST_ITERATIONS_OF_A_BAR = 10_000, 1_000
"""A counter with a higher total is counted in at most so many blocks of steps, as each iteration costs a report."""


@dataclass(frozen=True)
class Mark:
    """A sign of an iteration, found in a report, a file or the output.

    Attributes:
        at: its time, in seconds of ``time.monotonic``.
        number: the command's own number of the iteration; None: it has none. With ``done``: steps done since the
            progress bar's first frame.
        total: number of all iterations (with ``done``: steps), if the command states it.
        metrics, features: values given with it, by name.
        position: whether it stands at the start or the end of its iteration; ``done``: a progress bar's count of steps.
    """

    at: float
    number: int | None = None
    total: int | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    position: Position = "end"


@dataclass(frozen=True)
class Iteration:
    """A finished iteration.

    Attributes:
        index: its number, counting from 0 in order of arrival.
        seconds: its duration in seconds; None if its start is unknown, because it includes the command's start-up.
        pause: seconds before it, since the iteration before ended, in which the command was started again and did again
            what was lost; if ``seconds`` is None, with the iteration itself.
        late: whether it ended while the command was being stopped for a change.
        at: its end, in seconds of ``time.monotonic``.
        metrics, features: values given with it, by name.
    """

    index: int
    seconds: float | None
    at: float
    metrics: Mapping[str, float]
    features: Mapping[str, float]
    pause: float = 0.0
    late: bool = False


class Clock:
    """Turns marks into iterations, counting each once.

    A repeated number is the same iteration. A lower number than the last is a look back ("best epoch: 17") and is
    ignored, unless it is as low as the first: then the command counts anew. If a counter with a total skips numbers,
    each skipped one is an iteration, at even distances in time. If it goes from 0 to its total, 0 is no iteration.

    Attributes:
        total: number of all iterations, once known; None again if more have come.
        count: number of finished iterations.

    Args:
        iterations: the registered workload's number of iterations, None: unknown; such a total isn't counted in blocks.
        resumes: whether the command continues from a checkpoint when it is started again: it never counts anew then,
            and repeats the iterations after its checkpoint, which aren't counted again.
    """

    def __init__(self, iterations: int | None = None, *, resumes: bool = False) -> None:
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
        self._resumes, self._restarted = resumes, False
        self._back: float | None = None
        self._pause = 0.0

    @property
    def ended(self) -> float | None:
        """When the latest iteration ended, in seconds of ``time.monotonic``; None: none has begun yet."""
        return self._last

    def restart(self) -> None:
        """Note that the command was started again: the time until it goes beyond what it had done is no iteration's."""
        if self._last is not None:
            self._restarted, self._back, self._open = True, None, None

    def repeat(self, at: float) -> None:
        """Note that a repeated iteration ended at ``at``, in seconds of ``time.monotonic``: the next one began then."""
        if self._restarted:
            self._back = at

    def hear(self, mark: Mark) -> list[Iteration]:
        """The iterations that end with this mark, in order; empty if none does."""
        before, number = self._number, mark.number
        if self._resumes and number is not None and before is not None and number <= before:
            if mark.position != "start":
                self.repeat(mark.at)
            elif number == before and self._restarted and self._open is None:
                self.repeat(mark.at)
                self._open = mark  # the iteration in which it was stopped
            return []
        if number is not None and before is not None and (number == before or self._first < number < before):
            return []
        self._number = number
        self._take(mark.total, MOST_ITERATIONS_OF_A_BAR if mark.position == "done" else MOST_ITERATIONS)
        if mark.position == "done":
            if before is None and not number:
                self._last = mark.at
            return self._complete_blocks(mark, mark.at, (number or 0) - (before or 0))
        goes_on = number is not None and before is not None and number > before
        self._stride = (number or 0) - (before or 0) if goes_on and mark.total else 1
        if not goes_on:
            self._first = number or 0
        surplus = goes_on and self._first == 0 and number == mark.total
        if mark.position == "start":
            opened, self._open = self._open, None if surplus else mark
            if opened is None and not self._restarted:
                self._last = mark.at
                return []
            return self._complete_blocks(opened or mark, mark.at, self._stride)
        return self._complete_blocks(mark, mark.at, self._stride - surplus)

    def forget(self) -> None:
        """Prepare for marks from another source; an iteration that has begun ends by the new source's next mark."""
        self._open = self._number = None

    def finish(self, at: float) -> list[Iteration]:
        """The iterations in progress when the command ended, at ``at`` (seconds of ``time.monotonic``)."""
        opened, self._open = self._open, None
        if opened is None:
            return []
        left = self._stride
        if opened.total is not None and opened.number is not None:
            left = min(left, opened.total - (opened.number - self._first))
        return self._complete_blocks(opened, at, max(1, left))

    def _take(self, total: int | None, most: int) -> None:
        if total is None:
            return
        if not self._steps:
            self._block = 1 if total == self._registered else ceil(total / most)
        if self.count < ceil(total / self._block):
            self.total = ceil(total / self._block)

    def _complete_blocks(self, mark: Mark, at: float, steps: int) -> list[Iteration]:
        """The blocks completed by ``steps`` further steps until ``at``, all of equal duration."""
        if self._last is None:
            self._last, self._blind = at, True
        self._steps, self._rest = self._steps + steps, self._rest + steps
        own_seconds = mark.metrics.get(SECONDS)
        unknown = False
        if self._restarted:
            self._restarted = False
            back = at - own_seconds if own_seconds and own_seconds > 0 and self._back is None else self._back
            unknown = back is None
            if back is not None:
                self._pause += max(back - self._last, 0.0)
                self._last = max(back, self._last)
        sizes = [self._block] * (self._rest // self._block)
        if self._rest % self._block and self._steps == mark.total:
            sizes.append(self._rest % self._block)
        pace = max(at - self._last, 1e-6) / max(self._rest, 1)
        metrics = {name: value for name, value in mark.metrics.items() if name != SECONDS}
        blocks = []
        for size in sizes:
            self._rest -= size
            self._last = at - pace * self._rest
            seconds = (
                own_seconds if own_seconds and own_seconds > 0 else None if self._blind or unknown else pace * size
            )
            pause = self._pause + (pace * size if unknown else 0.0)
            blocks.append(Iteration(self.count, seconds, self._last, metrics, mark.features, pause))
            self._blind, self._pause = False, 0.0
            self.count += 1
        if self.total is not None and self.count > self.total:
            self.total = None
        return blocks
