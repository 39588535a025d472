"""A run of the command through whose iterations its allocation is moved: what is measured are samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from steward_client.launcher.iterations.mark import Iteration
from steward_client.launcher.row import PROFILE, Row
from steward_client.launcher.watched import Watched

MOVED = "to be measured"
LENGTH = 3
"""Iterations at one allocation: a sample of the workload."""
TRIES = 5
"""Allocations that are tried in a row until one of them can be set."""


@dataclass
class Segment:
    """Iterations in a row under one allocation."""

    allocation: Mapping[str, float]
    rows: list[Row] = field(default_factory=list)


class Profile:
    """Moves the allocation after every few iterations, until enough is measured.

    Attributes:
        watched: the command.
        rows: its iterations, but for one whose beginning is not known: the command's start would be in it.

    Args:
        allocations: what is measured next.
        done: takes each sample as it is whole; the answer is whether more are wanted.
    """

    def __init__(
        self, watched: Watched, allocations: Iterator[Mapping[str, float]], done: Callable[[Segment], bool]
    ) -> None:
        self.watched, self.rows = watched, list[Row]()
        self._allocations, self._done = allocations, done
        self._segment = Segment(next(allocations))

    @property
    def total(self) -> int | None:
        """Iterations of the command, once they are told or it has come to its end."""
        clock = self.watched.clock
        return clock.total or (None if self.watched.status is None else clock.count)

    def measure(self) -> bool:
        """Measure; whether it is enough and the command goes on."""
        self.watched.start(self._segment.allocation, {})
        for iteration in self._each():
            if not self._after(iteration):
                self._flush()
                return True
        self._flush()
        return False

    def hold(self, allocation: Mapping[str, float], ready: Callable[[], bool]) -> bool:
        """Go on under one allocation until something is ready; whether the command goes on then.

        What is worked for that may slow it down on the same machine: these iterations are no samples.
        """
        self._move(allocation)
        for iteration in self._each():
            self._row(iteration)
            if ready():
                return True
        return False

    def _each(self) -> Iterator[Iteration]:
        """Each iteration; the command knows by its file what was made of it, as it does under decisions."""
        for iteration in self.watched.iterations():
            yield iteration
            self.watched.tell(self.watched.clock.count, self._segment.allocation, MOVED)

    def _after(self, iteration: Iteration) -> bool:
        """Keep an iteration; whether more are wanted."""
        row = self._row(iteration)
        if row is None:
            return True
        self._segment.rows.append(row)
        if len(self._segment.rows) < LENGTH:
            return True
        more = self._flush()
        if more:  # some may be refused; if all are, what is set is measured again
            any(self._move(allocation) for allocation in islice(self._allocations, TRIES))
        return more

    def _row(self, iteration: Iteration) -> Row | None:
        if iteration.seconds is None:
            return None
        allocation, told = self._segment.allocation, (iteration.metrics, iteration.features)
        self.rows.append(Row(iteration.index, iteration.seconds, allocation, *told, PROFILE))
        return self.rows[-1]

    def _flush(self) -> bool:
        """Hand over what is measured; whether more is wanted."""
        whole, self._segment = self._segment, Segment(self._segment.allocation)
        return self._done(whole) if whole.rows else True

    def _move(self, allocation: Mapping[str, float]) -> bool:
        """Go on under another allocation; whether it can be set."""
        moved = self.watched.apply(allocation)
        if moved:
            self._segment = Segment(allocation)
        return moved
