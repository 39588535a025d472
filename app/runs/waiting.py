"""Limits on waiting reports, and worker threads for expensive ones."""

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

# Work that would block the event loop runs in threads, a limited number per tenant.
#
# A thread releases the interpreter within a fraction of a millisecond, so that the loop goes on answering
# other requests; and there is always a thread for another tenant.


T = TypeVar("T")
THREADS, AT_ONCE = 3, 2
"""Number of threads in all, and of those that one tenant may use at once."""
MOST_WAITING, MOST_BYTES = 256, 64 << 20
"""Largest number and total bytes of one tenant's expensive calls, waiting and running."""
RETRY_SECONDS = 1


class _Lane:
    """One tenant's running and waiting work; running work holds a place of the semaphore."""

    def __init__(self) -> None:
        self.places, self.waiting, self.size = asyncio.Semaphore(AT_ONCE), 0, 0


class Aside:
    """Runs expensive work in threads, at most ``AT_ONCE`` calls of a tenant at a time; bound to one event loop."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aside")

    async def run(self, tenant: str, size: int, call: Callable[..., T], *arguments: object) -> T:
        """Run ``call`` in a thread and return its result; if the caller is cancelled, the call goes on and keeps its
        place.

        Args:
            tenant: the tenant whose limits apply.
            size: bytes that count against the tenant's limit.
            call, arguments: the function and its arguments.

        Raises:
            TooManyRequests: the tenant's limit of waiting calls or bytes is reached.
        """
        lane = self._lanes.setdefault(tenant, _Lane())
        if lane.waiting >= MOST_WAITING or lane.size > MOST_BYTES:
            raise TooManyRequests(
                f"tenant {tenant} has {lane.waiting} large reports queued, {lane.size:,} bytes, the maximum; "
                "nothing was stored, repeat the request",
                "reports",
                retry_after=RETRY_SECONDS,
            )
        lane.waiting, lane.size = lane.waiting + 1, lane.size + size
        try:
            await lane.places.acquire()
        except BaseException:
            self._leave(tenant, lane, size)
            raise
        try:
            work = asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
        except BaseException:  # there can't be one more thread
            self._end(tenant, lane, size)
            raise
        work.add_done_callback(lambda _: self._end(tenant, lane, size))
        try:
            return await asyncio.shield(work)
        finally:
            del work  # else an error, its traceback and what the call was given would hold one another for long

    def _end(self, tenant: str, lane: _Lane, size: int) -> None:
        lane.places.release()
        self._leave(tenant, lane, size)

    def _leave(self, tenant: str, lane: _Lane, size: int) -> None:
        lane.waiting, lane.size = lane.waiting - 1, lane.size - size
        if not lane.waiting:
            del self._lanes[tenant]


# Limits on number and age of waiting reports: beyond them new reports are refused at once.
#
# So under overload refused callers lose little time, accepted reports
# are answered soon, and memory is bounded.


MOST = 1_024
LONGEST_SECONDS = 0.5  # wait of the oldest up to which others join it: longer than a batch, which a slow disk may hold


class Waiting:
    """Counts the reports of a process that are accepted and not answered yet; bound to one event loop.

    Args:
        clock: monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: OrderedDict[int, float] = OrderedDict()
        self._number = 0

    def enter(self) -> int:
        """Accept a report and return the number that ``away`` and ``leave`` take.

        Raises:
            Unavailable: too many reports wait, or the oldest has waited for more than 0.5 s.
        """
        now, count = self._clock(), len(self._since)
        if count >= LARGEST_BATCH and (count >= MOST or now - next(iter(self._since.values())) > LONGEST_SECONDS):
            raise Unavailable(
                f"{count:,} reports are queued, more than this process handles in {LONGEST_SECONDS:g} s; nothing was "
                "stored, repeat the request",
                retry_after=RETRY_SECONDS,
            )
        self._number += 1
        self._since[self._number] = now
        return self._number

    @contextmanager
    def away(self, number: int) -> Iterator[None]:
        """Context manager: don't count a report while a thread works on it; afterwards it waits as if new."""
        del self._since[number]
        try:
            yield
        finally:
            self._since[number] = self._clock()

    def leave(self, number: int) -> None:
        """Remove the report ``number``, because it is answered or cancelled."""
        del self._since[number]
