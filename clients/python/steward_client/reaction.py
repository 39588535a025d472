"""Contingencies of a decision: changes of the allocation within an iteration that takes longer than expected."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

Clock = Callable[[], float]
Apply = Callable[[Mapping[str, float]], object]
"""Sets an allocation, by resource, while the iteration goes on; what it raises is logged, and nothing has changed."""

logger = logging.getLogger("steward_client")


class Contingency(NamedTuple):
    """The allocation to set if an iteration isn't over after some seconds, and the reason."""

    after_seconds: float
    allocation: Mapping[str, float]
    reason: str


class Timetable:
    """What a decision says to change within one iteration in progress, and its parts so far, by allocation.

    Args:
        allocation: the allocation at its beginning, by resource.
        contingencies: what the decision says, by ascending time.
        began: time of its beginning, in seconds of a monotonic clock.
    """

    def __init__(self, allocation: Mapping[str, float], contingencies: Sequence[Contingency], began: float) -> None:
        self._began, self._left = began, list(contingencies)
        self._segments = [(dict(allocation), 0.0)]

    @property
    def next_at(self) -> float | None:
        """Time of the next contingency, on the same clock; None: there is none."""
        return self._began + self._left[0].after_seconds if self._left else None

    @property
    def allocation(self) -> dict[str, float]:
        """The allocation in effect: amounts by resource, in the spec's units."""
        return dict(self._segments[-1][0])

    def due(self, now: float) -> Contingency | None:
        """Remove the contingencies that are due by ``now`` (seconds of the clock), and return the latest, or None."""
        due = None
        while (at := self.next_at) is not None and at <= now:
            due = self._left.pop(0)
        return due

    def changed(self, allocation: Mapping[str, float], now: float) -> None:
        """Record that an allocation is in effect from time ``now`` (seconds of the clock) on."""
        if dict(allocation) != self.allocation:
            self._segments.append((dict(allocation), now - self._began))

    def next(self, contingencies: Sequence[Contingency], began: float) -> Timetable:
        """The timetable of the next iteration, which began at ``began``: with what was changed since then, by now."""
        moved = [(allocation, self._began + begun - began) for allocation, begun in self._segments]
        since = max(number for number, (_, begun) in enumerate(moved) if begun <= 0 or not number)
        result = Timetable(moved[since][0], contingencies, began)
        result._segments += moved[since + 1 :]
        return result

    def segments(self, seconds: float, ended: float | None = None) -> list[dict[str, Any]]:
        """``allocation`` and ``seconds`` of the iteration's parts, in order; empty if nothing was changed within it.

        ``seconds`` is its duration; ``ended`` the time of its end on the same clock, if it began later than this
        timetable. Changes after the end are left out, those before the beginning are in effect from it on.
        """
        within = self._within(seconds, ended)
        if len(within) < 2:
            return []
        ends = [*(begun for _, begun in within[1:]), seconds]
        return [
            {"allocation": allocation, "seconds": end - begun}
            for (allocation, begun), end in zip(within, ends, strict=True)
        ]

    def allocation_at_end(self, seconds: float, ended: float | None = None) -> dict[str, float]:
        """Amounts by resource at the end of an iteration of ``seconds``; ``ended``: its time on the clock, if known."""
        return dict(self._within(seconds, ended)[-1][0])

    def _within(self, seconds: float, ended: float | None) -> list[tuple[dict[str, float], float]]:
        late = 0.0 if ended is None else max(ended - seconds - self._began, 0.0)
        moved = [(allocation, max(begun - late, 0.0)) for allocation, begun in self._segments]
        selection = [segment for segment in moved if segment[1] < seconds] or moved[:1]
        return [
            segment
            for segment, after in zip(selection, [*selection[1:], None], strict=True)
            if after is None or after[1] > 0
        ]


class Reaction:
    """Applies contingencies in a thread while an iteration runs; a context manager around the iteration.

    ::

        with run.react(resize) as reaction:
            train_one_epoch()
        run.report(epoch, reaction.allocation, {"iteration_seconds": reaction.seconds}, segments=reaction.segments)

    Args:
        allocation: the allocation at the iteration's beginning.
        contingencies: what the decision says, by ascending time.
        apply: sets an allocation.
        clock: seconds of a monotonic clock.
    """

    def __init__(
        self,
        allocation: Mapping[str, float],
        contingencies: Sequence[Contingency],
        apply: Apply,
        clock: Clock = time.monotonic,
    ) -> None:
        self._began, self._clock, self._apply = clock(), clock, apply
        self._timetable = Timetable(allocation, contingencies, self._began)
        self._seconds: float | None = None
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._timetable.next_at is not None:
            self._thread = threading.Thread(target=self._work, name="steward-contingencies", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the iteration: no contingency is applied after this. Waits for a change in progress; may be repeated."""
        if self._seconds is None:
            self._seconds = self._clock() - self._began
            self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    @property
    def seconds(self) -> float:
        """Duration of the iteration in seconds; until its end, the seconds since its beginning."""
        return self._clock() - self._began if self._seconds is None else self._seconds

    @property
    def allocation(self) -> dict[str, float]:
        """The allocation in effect, or at the iteration's end: amounts by resource, in the spec's units."""
        return self._timetable.allocation_at_end(self.seconds)

    @property
    def segments(self) -> list[dict[str, Any]]:
        """``allocation`` and ``seconds`` of the iteration's parts, for its report; empty if nothing was changed."""
        return self._timetable.segments(self.seconds)

    def _work(self) -> None:
        while (at := self._timetable.next_at) is not None:
            if self._over.wait(max(at - self._clock(), 0.0)):
                return
            now = self._clock()
            due = self._timetable.due(now)
            if due is None or self._over.is_set():
                continue
            try:
                self._apply(due.allocation)
            except Exception:
                logger.exception(
                    "%s could not be applied within the iteration; the present limits stay", due.allocation
                )
            else:
                self._timetable.changed(due.allocation, now)
