"""Bases for an event loop: at hand when they are fresh, else fetched in a thread, once for all who wait."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy.exc import SQLAlchemyError

from app.decisions.desks import desk_of
from app.kinds.contract.engine import Basis
from app.workloads.snapshot import Serving, WorkloadCache

logger = logging.getLogger(__name__)
Key = tuple[str, str]
LARGEST_CACHE = 256


class BasisCache:
    """The basis of each serving; safe to share between threads. A new serving of a workload replaces the old one."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._bases: OrderedDict[str, Basis] = OrderedDict()

    def get(self, serving: Serving) -> Basis:
        """The serving's basis, compiled when it isn't there yet."""
        basis = self._bases.get(serving.workload_id)
        if basis is not None and basis.serving is serving:
            return basis
        basis = desk_of(serving.spec.kind).compile(serving)
        with self._lock:
            self._bases[serving.workload_id] = basis
            self._bases.move_to_end(serving.workload_id)
            while len(self._bases) > self._size:
                self._bases.popitem(last=False)
        return basis

    def peek(self, serving: Serving) -> Basis | None:
        """The serving's basis when it is compiled."""
        basis = self._bases.get(serving.workload_id)
        return basis if basis is not None and basis.serving is serving else None


class Bases:
    """What workloads are decided with, kept up to date in the background while `poll` runs."""

    def __init__(self, serving: WorkloadCache, cache: BasisCache) -> None:
        self._serving, self._cache = serving, cache
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="bases")
        self._fetching: dict[tuple[asyncio.AbstractEventLoop, Key], asyncio.Future[Basis]] = {}

    async def get(self, workload: str, tenant: str) -> Basis:
        """The workload's basis, at most a poll out of date.

        Raises:
            NotFound: no such workload.
        """
        serving = self._serving.peek(workload, tenant)
        basis = self._cache.peek(serving) if serving is not None else None
        return basis if basis is not None else await self._fetched((workload, tenant))

    async def _fetched(self, key: Key) -> Basis:
        loop = asyncio.get_running_loop()
        fetching = self._fetching.get((loop, key))
        if fetching is None:
            fetching = loop.run_in_executor(self._threads, self.fetch, *key)
            self._fetching[loop, key] = fetching
            fetching.add_done_callback(lambda _: self._fetching.pop((loop, key), None))
        return await asyncio.shield(fetching)

    def fetch(self, workload: str, tenant: str) -> Basis:
        """The same, for a thread that may wait."""
        return self._cache.get(self._serving.get(workload, tenant))

    async def poll(self, seconds: float) -> None:
        """Look for changed workloads every so often, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            try:
                await loop.run_in_executor(self._threads, self._serving.poll)
            except SQLAlchemyError as error:
                logger.warning("can't look for changed workloads: %s", error)
