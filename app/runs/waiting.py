"""How many reports wait in a process, and work that is done in threads."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from app.errors import TooManyRequests, Unavailable
from app.http.batching import LARGEST_BATCH

# Work that would hold the event loop for long: done in threads, so many of each tenant's at once.
#
# A thread hands the interpreter back within a fraction of a millisecond, so that the loop goes on answering others
# meanwhile; and there is always a thread for another tenant.


T = TypeVar("T")
THREADS, AT_ONCE = 3, 2
"""In all, and of a tenant."""
MOST_WAITING, MOST_BYTES = 256, 64 << 20
"""Of a tenant, with those that are done."""
RETRY_SECONDS = 1


class _Lane:
    """A tenant's work: what is done holds a place."""

    def __init__(self) -> None:
        self.places, self.waiting, self.size = asyncio.Semaphore(AT_ONCE), 0, 0


class Aside:
    """Does work in threads, ``AT_ONCE`` pieces of a tenant at a time; lives on one event loop."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aside")

    async def run(self, tenant: str, size: int, call: Callable[..., T], *arguments: object) -> T:
        """What the call gives. Cancelled while it is done, it keeps its tenant's place to its end.

        Args:
            size: bytes that wait with it.

        Raises:
            TooManyRequests: too much of the tenant's waits.
        """
        lane = self._lanes.setdefault(tenant, _Lane())
        if lane.waiting >= MOST_WAITING or lane.size > MOST_BYTES:
            raise TooManyRequests(
                f"{lane.waiting} reports of tenant {tenant} that take long wait, {lane.size:,} bytes, and no more may; "
                "nothing was taken, send it again",
                retry_after=RETRY_SECONDS,
            )
        lane.waiting, lane.size = lane.waiting + 1, lane.size + size
        try:
            await lane.places.acquire()
        except BaseException:
            self._left(tenant, lane, size)
            raise
        try:
            work = asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
        except BaseException:  # there can't be one more thread
            self._ended(tenant, lane, size)
            raise
        work.add_done_callback(lambda _: self._ended(tenant, lane, size))
        try:
            return await asyncio.shield(work)
        finally:
            del work  # else an error, its traceback and what the call was given would hold one another for long

    def _ended(self, tenant: str, lane: _Lane, size: int) -> None:
        lane.places.release()
        self._left(tenant, lane, size)

    def _left(self, tenant: str, lane: _Lane, size: int) -> None:
        lane.waiting, lane.size = lane.waiting - 1, lane.size - size
        if not lane.waiting:
            del self._lanes[tenant]


# How many reports wait in a process, and for how long: where it is too much, new ones are refused at once.
#
# So a load beyond what the machine takes costs those whom it refuses a moment, and not everybody their patience; what
# is taken is answered soon, memory is bounded, and once less comes in all is taken again.


MOST = 1_024
LONGEST_SECONDS = 0.5  # that the oldest waits while others join it: for more than one batch, which a slow disk may hold


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
