"""Profile: a run of the command during which its allocation is changed, to measure samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from steward_client.launcher.iterations.mark import Iteration
from steward_client.launcher.row import PROFILE, Row
from steward_client.launcher.watched import Watched

MOVED = "to be measured"
LENGTH = 3
"""Iterations at one allocation, which form a sample of the workload."""
TRIES = 5
"""Most allocations tried in a row until one can be set."""


@dataclass
class Segment:
    """Consecutive iterations with one allocation."""

    allocation: Mapping[str, float]
    rows: list[Row] = field(default_factory=list)


class Profile:
    """Changes the allocation after every few iterations, until enough is measured.

    Attributes:
        watched: the command.
        rows: its iterations, without those whose start is unknown; those in which something waited have what was there.
        measured: whether any of them was measured.

    Args:
        watched: the command, not started yet.
        allocations: the allocations to be measured, without end.
        done: called with each finished sample; returns whether more are needed.
        length: iterations of a sample.
        waits: whether an allocation is measured only once it is there; if not, iterations with a part of it count, too.
    """

    def __init__(
        self,
        watched: Watched,
        allocations: Iterator[Mapping[str, float]],
        done: Callable[[Segment], bool],
        length: int = LENGTH,
        *,
        waits: bool = True,
    ) -> None:
        self.watched, self.rows, self.measured = watched, list[Row](), False
        self._allocations, self._done, self._length = allocations, done, length
        self._segment = Segment(next(allocations))
        self._there: Mapping[str, float] | None = None  # the allocation in effect; None: the first one isn't there yet
        self._waits, self._waiting = waits, False
        self._sampled: Row | None = None  # the latest iteration that was measured
        self._given_up = list[Mapping[str, float]]()  # they were not there in time

    @property
    def total(self) -> int | None:
        """The command's number of iterations, once it has stated it or has ended; None before."""
        clock = self.watched.clock
        return clock.total or (None if self.watched.status is None else clock.count)

    def measure(self) -> bool:
        """Start and measure the command; True if enough is measured and it runs on, False if it has ended."""
        self.watched.start(self._segment.allocation, {})
        self._waiting = self.watched.requests.awaits
        for iteration in self._each():
            if not self._after(iteration):
                self._flush()
                return True
        self._flush()
        return False

    def hold(self, allocation: Mapping[str, float], ready: Callable[[], bool]) -> bool:
        """Hold one allocation until ``ready`` returns True; False if the command ends before.

        These iterations are no samples, because background work on the same machine may slow them down.
        """
        self._move(allocation)
        for iteration in self._each():
            self._row(iteration)
            if ready():
                return True
        return False

    def _each(self) -> Iterator[Iteration]:
        """Yield each iteration, and then write the allocation to the command's file."""
        for iteration in self.watched.iterations():
            yield iteration
            self.watched.tell(self.watched.clock.count, self._segment.allocation, MOVED)

    def _after(self, iteration: Iteration) -> bool:
        """Add an iteration to the sample; whether more iterations are needed."""
        row = self._row(iteration)
        if row is None or row is not self._sampled:
            return True
        self._segment.rows.append(row)
        if len(self._segment.rows) < self._length:
            return True
        more = self._flush()
        if more:  # some may be refused; if all are, what is set is measured again
            present = self._segment.allocation
            any(allocation == present or self._move(allocation) for allocation in islice(self._allocations, TRIES))
        return more

    def _row(self, iteration: Iteration) -> Row | None:
        """Add an iteration to `rows`, and note whether it may be part of a sample; None: its start is unknown."""
        waited, segment = self._waits and self._waited(iteration), self._segment.allocation
        if iteration.seconds is None or iteration.late:  # an unknown part of it was the change
            return None
        took = iteration.seconds + iteration.pause
        there = self.watched.actuator.current() if waited or not self._waits else {}
        allocation = {name: there.get(name, value) for name, value in segment.items()}
        measurement = allocation, iteration.metrics, iteration.features
        self.rows.append(Row(iteration.index, took, *measurement, PROFILE, change_seconds=iteration.pause))
        if not waited:
            self._sampled, self.measured = self.rows[-1], True
        return self.rows[-1]

    def _waited(self, iteration: Iteration) -> bool:
        """Whether the segment's allocation was not there during all of the latest iteration.

        If it is refused by now, or was not granted in time, the one before is measured again; another one if there is
        none before."""
        requests = self.watched.requests
        waited, self._waiting = self._waiting, requests.awaits
        if self._waiting:
            return True
        if waited and requests.last is not None and requests.last.state != "granted":
            if requests.last.state == "timed_out":
                self._given_up.append(requests.last.allocation)
            if self._there is not None:
                self._segment = Segment(self._there)
            elif not any(self._move(allocation) for allocation in islice(self._allocations, TRIES)):
                self._waiting = True  # nothing that could be measured is there
            return True
        self._there = self._segment.allocation
        began = iteration.at - (iteration.seconds or 0.0)
        return waited or began < requests.granted_at  # several may be read at once

    def _flush(self) -> bool:
        """Pass on the present sample if it has iterations; whether more are needed."""
        whole, self._segment = self._segment, Segment(self._segment.allocation)
        return self._done(whole) if whole.rows else True

    def _move(self, allocation: Mapping[str, float]) -> bool:
        """Request another allocation; False if it is refused, or was not there in time before."""
        if allocation in self._given_up:
            return False
        moved, requests = self.watched.apply(allocation), self.watched.requests
        waits = requests.awaits and requests.last is not None and requests.last.allocation == dict(allocation)
        if moved or waits:
            self._segment, self._waiting = Segment(allocation), waits
        return moved or waits
