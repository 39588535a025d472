"""Compiled workloads for an event loop: at hand when fresh, else fetched in a thread, once for all who wait."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from sqlalchemy.exc import SQLAlchemyError

from app.kinds.contract.engine import CompiledWorkload, Snapshot
from app.kinds.registry import KINDS
from app.workloads.snapshot import WorkloadCache

logger = logging.getLogger(__name__)
Key = tuple[str, str, str]


def compiled(snapshot: Snapshot) -> CompiledWorkload:
    """The snapshot ready to decide with, made the first time."""
    found = snapshot.compiled.get("")
    return found or snapshot.compiled.setdefault("", KINDS[snapshot.spec.kind].engine.compile(snapshot))


def by_rule(workload: CompiledWorkload, rule: str) -> CompiledWorkload:
    """The same workload, decided for by a rule; agents are left out. Compiling takes a moment, the first time.

    Where the rule can't decide any more (its domain model can't be read, or it is gone), the default rule answers as a
    fallback.
    """
    snapshot = workload.snapshot
    found = snapshot.compiled.get(rule)
    if found is None:
        engine = KINDS[snapshot.spec.kind].engine
        there = rule in engine.rules(workload)
        alone = replace(
            snapshot,
            rule=rule if there else "",
            problem="" if there else f"rule {rule} can't decide for this workload any more",
            agent_version=None,
            artifact=None,
            policies={},
            shadow=None,
            compiled={},
        )
        found = snapshot.compiled.setdefault(rule, engine.compile(alone))
    return found


class CompiledWorkloads:
    """What workloads are decided with, kept up to date in the background while `poll` runs."""

    def __init__(self, snapshots: WorkloadCache) -> None:
        self._snapshots = snapshots
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="compile")
        self._fetching: dict[tuple[asyncio.AbstractEventLoop, Key], asyncio.Future[CompiledWorkload]] = {}

    async def get(self, workload: str, tenant: str, rule: str = "") -> CompiledWorkload:
        """The compiled workload, at most a poll out of date; ``rule``: see ``by_rule``.

        Raises:
            NotFound: no such workload.
        """
        found = self.peek(workload, tenant, rule)
        return found if found is not None else await self._fetched((workload, tenant, rule))

    def peek(self, workload: str, tenant: str, rule: str = "") -> CompiledWorkload | None:
        """The same where it is at hand, else None."""
        snapshot = self._snapshots.peek(workload, tenant)
        return None if snapshot is None else snapshot.compiled.get(rule)

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
        found = compiled(self._snapshots.get(workload, tenant))
        return by_rule(found, rule) if rule else found

    def current(self, workload: str, tenant: str) -> CompiledWorkload:
        """The workload as the database has it now, compiled, for a thread that may wait.

        Raises:
            NotFound: no such workload.
        """
        return compiled(self._snapshots.current(workload, tenant))

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
