"""Epochs of a training loop: each has an allocation, records metrics, measures its duration, and reports itself."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future

from .channel import Channel, Segments
from .reaction import Apply, Reaction

SECONDS = "iteration_seconds"
SHORTEST = 1e-9
WAIT_SHARE = 0.01
"""Longest wait for a decision, as a share of the duration of the epoch that it answers."""

Clock = Callable[[], float]
logger = logging.getLogger("steward_client")


class Epoch:
    """One epoch, or another step of a loop.

    Attributes:
        number: its number, counting from 0 over the whole run.
        allocation: the decided allocation, amounts by resource in the spec's units; empty if there is none.
    """

    def __init__(self, channel: Channel, number: int, clock: Clock, apply: Apply | None = None) -> None:
        self.number, self.allocation = number, channel.allocation
        self._channel, self._clock = channel, clock
        self._used = self.allocation
        self._metrics: dict[str, float] = {}
        self._features: dict[str, float] = {}
        self._began = clock()
        self._done: Future[None] | None = None
        self._reaction: Reaction | None = None
        if apply is not None and self.allocation:
            self._reaction = Reaction(self.allocation, channel.contingencies, apply, clock).__enter__()

    def log(self, **metrics: float) -> None:
        """Record metrics; later values replace earlier ones. ``iteration_seconds`` is measured unless it is given.

        A value that isn't finite, such as the loss of a diverging training, is left out and logged.

        Raises:
            ValueError, TypeError: a value is no number.
        """
        for name, value in metrics.items():
            number = _number("metric", name, value)
            if math.isfinite(number):
                self._metrics[name] = number
            else:
                logger.warning("iteration %d: metric %r is %g, and left out", self.number, name, number)

    def describe(self, **features: float) -> None:
        """Record features of this epoch, such as its batch size.

        Raises:
            ValueError, TypeError: a value is no finite number.
        """
        self._features |= {name: _finite("feature", name, value) for name, value in features.items()}

    def used(self, **allocation: float) -> None:
        """Record the amounts actually used by resource, if they differ from ``allocation``.

        Raises:
            ValueError, TypeError: a value is no finite number.
        """
        self._used = self._used | {name: _finite("resource", name, value) for name, value in allocation.items()}

    @property
    def seconds(self) -> float:
        """Seconds since the epoch's start, above 0."""
        return max(self._clock() - self._began, SHORTEST)

    @property
    def iteration_seconds(self) -> float:
        """The epoch's duration in seconds, as reported or given; before its end, its duration so far."""
        return self._metrics.get(SECONDS) or self.seconds

    def end(self) -> Future[None]:
        """Report the epoch, once; the loop does so, except after ``break``. The future is done once it is answered or
        stored.

        Raises:
            StewardError: an earlier report was refused.
        """
        if self._done is None:
            self._metrics.setdefault(SECONDS, self.seconds)
            segments = self._segments()
            self._done = self._channel.report(self.number, self._used, self._metrics, self._features, segments)
        return self._done

    def _segments(self) -> Segments:
        """Stop changes; allocation and seconds of each part of the epoch; empty if the allocation didn't change."""
        if self._reaction is None:
            return ()
        self._reaction.stop()
        segments = self._reaction.segments
        if not segments or self._used != self.allocation:  # what the loop says that it used counts
            return ()
        scale = self._metrics[SECONDS] / max(self._reaction.seconds, SHORTEST)
        self._used = segments[-1]["allocation"]
        return [part | {"seconds": part["seconds"] * scale} for part in segments]

    def stop_reacting(self) -> None:
        """Stop changing the allocation within this epoch; waits for a change in progress."""
        if self._reaction is not None:
            self._reaction.stop()


class Loop:
    """Common part of synchronous and asynchronous loops.

    Args:
        channel: destination of reports, already started.
        count: number of epochs of the whole run, including those already reported.
        wait_share: longest wait for a decision, as a share of the duration of the epoch that it answers; 0 or more.
        clock: seconds of a monotonic clock.
        apply: sets an allocation within an epoch that takes longer than expected; None: nothing is done then.

    Raises:
        ValueError: ``count`` or ``wait_share`` is below 0.
    """

    def __init__(
        self,
        channel: Channel,
        count: int = 0,
        wait_share: float = 0.0,
        clock: Clock = time.perf_counter,
        apply: Apply | None = None,
    ) -> None:
        if count < 0 or not wait_share >= 0:
            raise ValueError(f"epochs and wait_share must be 0 or more, not {count!r} and {wait_share!r}")
        self._channel, self._clock, self._share, self._apply = channel, clock, wait_share, apply
        self.numbers = range(channel.iteration, count)
        if count:
            channel.expect(count)

    def begin(self) -> Epoch:
        """Begin the next epoch and return it."""
        return Epoch(self._channel, self._channel.iteration, self._clock, self._apply)

    def end(self, epoch: Epoch) -> tuple[Future[None], float]:
        """Report an epoch; returns future and seconds to wait for it. Raises StewardError if one before was refused."""
        done = epoch.end()
        return done, 0.0 if done.done() else self._share * epoch.seconds


def _number(what: str, name: str, value: float) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what} {name!r} must be a finite number, not {value!r:.80}") from None


def _finite(what: str, name: str, value: float) -> float:
    number = _number(what, name, value)
    if not math.isfinite(number):
        raise ValueError(f"{what} {name!r} must be a finite number, not {number}")
    return number
