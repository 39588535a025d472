"""Compiled workloads for an event loop: at hand when fresh, else fetched in a thread, once for all who wait."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from app.kinds.contract.engine import CompiledWorkload, Snapshot
from app.kinds.registry import KINDS
from app.workloads.snapshot import WorkloadCache

logger = logging.getLogger(__name__)
Key = tuple[str, str, str]
LARGEST_CACHE = 256


class CompiledCache:
    """The compiled form of each snapshot; safe to share between threads. A newer snapshot replaces the old one."""

    def __init__(self, size: int = LARGEST_CACHE) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._compiled: OrderedDict[str, CompiledWorkload] = OrderedDict()

    def get(self, snapshot: Snapshot) -> CompiledWorkload:
        """The snapshot's compiled form, made when it isn't there yet."""
        compiled = self._compiled.get(snapshot.workload_id)
        if compiled is not None and compiled.snapshot is snapshot:
            return compiled
        compiled = KINDS[snapshot.spec.kind].engine.compile(snapshot)
        with self._lock:
            self._compiled[snapshot.workload_id] = compiled
            self._compiled.move_to_end(snapshot.workload_id)
            while len(self._compiled) > self._size:
                self._compiled.popitem(last=False)
        return compiled

    def peek(self, snapshot: Snapshot) -> CompiledWorkload | None:
        """The snapshot's compiled form, if it is made."""
        compiled = self._compiled.get(snapshot.workload_id)
        return compiled if compiled is not None and compiled.snapshot is snapshot else None


def by_rule(compiled: CompiledWorkload, rule: str) -> CompiledWorkload:
    """The same workload, decided for by a rule; agents are left out. Compiling takes a moment, the first time.

    Where the rule can't decide any more (its domain model can't be read, or it is gone), the default rule answers as a
    fallback.
    """
    snapshot = compiled.snapshot
    found = snapshot.by_rule.get(rule)
    if found is None:
        engine = KINDS[snapshot.spec.kind].engine
        there = rule in engine.rules(compiled)
        alone = replace(
            snapshot,
            rule=rule if there else "",
            problem="" if there else f"rule {rule} can't decide for this workload any more",
            agent_version=None,
            artifact=None,
            policies={},
            shadow=None,
            by_rule={},
        )
        found = snapshot.by_rule.setdefault(rule, engine.compile(alone))
    return found


class CompiledWorkloads:
    """What workloads are decided with, kept up to date in the background while `poll` runs."""

    def __init__(self, snapshots: WorkloadCache, cache: CompiledCache) -> None:
        self._snapshots, self._cache = snapshots, cache
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="compile")
        self._fetching: dict[tuple[asyncio.AbstractEventLoop, Key], asyncio.Future[CompiledWorkload]] = {}

    async def get(self, workload: str, tenant: str, rule: str = "") -> CompiledWorkload:
        """The compiled workload, at most a poll out of date; ``rule``: see ``by_rule``.

        Raises:
            NotFound: no such workload.
        """
        compiled = self.peek(workload, tenant, rule)
        return compiled if compiled is not None else await self._fetched((workload, tenant, rule))

    def peek(self, workload: str, tenant: str, rule: str = "") -> CompiledWorkload | None:
        """The same where it is at hand, else None."""
        snapshot = self._snapshots.peek(workload, tenant)
        if snapshot is None:
            return None
        return snapshot.by_rule.get(rule) if rule else self._cache.peek(snapshot)

    async def _fetched(self, key: Key) -> CompiledWorkload:
        loop = asyncio.get_running_loop()
        fetching = self._fetching.get((loop, key))
        if fetching is None:
            fetching = loop.run_in_executor(self._threads, self.fetch, *key)
            self._fetching[loop, key] = fetching
            fetching.add_done_callback(lambda _: self._fetching.pop((loop, key), None))
        return await asyncio.shield(fetching)

    def fetch(self, workload: str, tenant: str, rule: str = "") -> CompiledWorkload:
        """The same, for a thread that may wait."""
        compiled = self._cache.get(self._snapshots.get(workload, tenant))
        return by_rule(compiled, rule) if rule else compiled

    def current(self, workload: str, tenant: str) -> CompiledWorkload:
        """The workload as the database has it now, compiled, for a thread that may wait.

        Raises:
            NotFound: no such workload.
        """
        return self._cache.get(self._snapshots.current(workload, tenant))

    async def poll(self, seconds: float) -> None:
        """Look for changed workloads every so often, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            try:
                await loop.run_in_executor(self._threads, self._snapshots.poll)
            except SQLAlchemyError as error:
                logger.warning("can't look for changed workloads: %s", error)
            except Exception:  # a defect must not end the looking: what is cached goes on answering
                logger.exception("looking for changed workloads failed")
