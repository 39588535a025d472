"""Work that would hold the event loop for long: done in threads, each tenant's one after another.

A thread hands the interpreter back within a fraction of a millisecond, so that the loop goes on answering others
meanwhile. Whoever comes with more work than is done waits behind that of its own tenant alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.errors import TooManyRequests

T = TypeVar("T")
THREADS = 2
MOST_WAITING = 32
"""Of a tenant, with the one that is done."""
RETRY_SECONDS = 1


class _Lane:
    """A tenant's work: what is done holds the lock."""

    def __init__(self) -> None:
        self.lock, self.waiting = asyncio.Lock(), 0


class Aside:
    """Does work in threads, one piece per tenant at a time; lives on one event loop."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Lane] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="aside")

    async def done(self, tenant: str, call: Callable[..., T], *arguments: object) -> T:
        """What the call gives. Cancelled while it is done, it keeps its tenant's place to its end.

        Raises:
            TooManyRequests: too much of the tenant's waits.
        """
        lane = self._lanes.setdefault(tenant, _Lane())
        if lane.waiting >= MOST_WAITING:
            raise TooManyRequests(
                f"{lane.waiting} large reports of tenant {tenant} wait, and no more may; nothing was taken, "
                "send it again",
                retry_after=RETRY_SECONDS,
            )
        lane.waiting += 1
        try:
            await lane.lock.acquire()
        except BaseException:
            self._left(tenant, lane)
            raise
        work = asyncio.get_running_loop().run_in_executor(self._threads, call, *arguments)
        work.add_done_callback(lambda _: self._ended(tenant, lane))
        try:
            return await asyncio.shield(work)
        finally:
            del work  # else an error, its traceback and what the call was given would hold one another for long

    def _ended(self, tenant: str, lane: _Lane) -> None:
        lane.lock.release()
        self._left(tenant, lane)

    def _left(self, tenant: str, lane: _Lane) -> None:
        lane.waiting -= 1
        if not lane.waiting:
            del self._lanes[tenant]
