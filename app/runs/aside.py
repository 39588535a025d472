"""Work that would hold the event loop for long: done in threads, so many of each tenant's at once.

A thread hands the interpreter back within a fraction of a millisecond, so that the loop goes on answering others
meanwhile; and there is always a thread for another tenant.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.errors import TooManyRequests

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
