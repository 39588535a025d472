"""How many reports wait in a process, and for how long: where it is too much, new ones are refused at once.

So a load beyond what the machine takes costs those whom it refuses a moment, and not everybody their patience; what is
taken is answered soon, memory is bounded, and once less comes in all is taken again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.errors import Unavailable
from app.http.batching import LARGEST_BATCH

MOST = 1_024
LONGEST_SECONDS = 0.5  # that the oldest waits while others join it: for more than one batch, which a slow disk may hold
RETRY_SECONDS = 1


class Waiting:
    """Reports that were taken and are not answered yet; lives on one event loop.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: OrderedDict[int, float] = OrderedDict()
        self._number = 0

    def enter(self) -> int:
        """Take a report; gives what ``leave`` is told.

        Raises:
            Unavailable: too many wait, or have waited for too long.
        """
        now, count = self._clock(), len(self._since)
        if count >= LARGEST_BATCH and (count >= MOST or now - next(iter(self._since.values())) > LONGEST_SECONDS):
            raise Unavailable(
                f"{count:,} reports wait already, more than this process answers in {LONGEST_SECONDS:g} s; nothing was "
                "taken, send it again",
                retry_after=RETRY_SECONDS,
            )
        self._number += 1
        self._since[self._number] = now
        return self._number

    @contextmanager
    def away(self, number: int) -> Iterator[None]:
        """While it is worked on aside it holds nobody up; then it waits as if it had come just now."""
        del self._since[number]
        try:
            yield
        finally:
            self._since[number] = self._clock()

    def leave(self, number: int) -> None:
        """It is answered, or given up."""
        del self._since[number]
