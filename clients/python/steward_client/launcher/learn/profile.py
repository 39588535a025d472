"""A run of the command through whose iterations its allocation is moved: what is measured are samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median

from steward_client.launcher.actuators.contract import Actuator
from steward_client.launcher.governed import Row
from steward_client.launcher.iterations.mark import UNKNOWN, Iteration, Startup
from steward_client.launcher.watched import Watched

LENGTH = 3
"""Iterations at one allocation: a sample of the workload."""


@dataclass
class Segment:
    """Iterations in a row under one allocation."""

    allocation: Mapping[str, float]
    rows: list[Row] = field(default_factory=list)


class Profile:
    """Moves the allocation after every few iterations, until enough is measured.

    Attributes:
        startup: before the first iteration began, as far as it can be told.
        total: iterations of the command, once they are told or it has come to its end.

    Args:
        allocations: what is measured next.
        done: takes each sample as it is whole; the answer is whether more are wanted.
    """

    def __init__(
        self,
        watched: Watched,
        actuator: Actuator,
        allocations: Iterator[Mapping[str, float]],
        done: Callable[[Segment], bool],
    ) -> None:
        self._watched, self._actuator = watched, actuator
        self._allocations, self._done = allocations, done
        self._segment = Segment(next(allocations))
        self.startup = UNKNOWN
        self._first: float | None = None
        self.total: int | None = None

    def run(self) -> int | None:
        """Measure; the command's exit status where it came to its end, None where it was ended."""
        self._watched.start(self._segment.allocation, {})
        for iteration in self._watched.iterations():
            self.total = self._watched.clock.total
            if self._after(iteration):
                self._actuator.stop()
                return None
        self.total = self.total or self._watched.clock.count
        if self._segment.rows:
            self._done(self._segment)
        return self._watched.status

    def _after(self, iteration: Iteration) -> bool:
        """Keep an iteration; whether all is measured."""
        known = self._watched.clock.startup
        self.startup = known if known.seconds else self.startup
        if iteration.index == 0 and not self.startup.seconds:
            self._first = iteration.seconds  # the start of the command is in it: no sample
            return False
        row = Row(
            len(self._segment.rows),
            iteration.seconds,
            self._segment.allocation,
            iteration.metrics,
            iteration.features,
            "profile",
        )
        self._segment.rows.append(row)
        if len(self._segment.rows) < LENGTH:
            return False
        whole, self._segment = self._segment, Segment(self._segment.allocation)
        if self._first is not None:  # what the first iteration took more than those after it, under the same
            seconds = max(0.0, self._first - median(row.seconds for row in whole.rows))
            self.startup = Startup(seconds, seconds / self._first)
            self._first = None
        if not self._done(whole):
            return True
        following = next(self._allocations)
        self._actuator.apply(following)
        self._segment = Segment(following)
        return False
