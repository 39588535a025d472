"""Decisions without a report: cache of compiled workloads, shadow agents, and stored decisions."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from app.agents import repository as agents
from app.database.base import utc_now
from app.database.engine import Database
from app.database.tables import Iteration, Run
from app.errors import NotFound
from app.http.batching import MicroBatch
from app.http.short_ids import full_id
from app.kinds.contract.engine import ADDED, Query, Shadow, Snapshot
from app.kinds.engine import Compiled
from app.kinds.registry import DEFAULT, KINDS, load_artifact
from app.policies.base import IncompatibleArtifact
from app.workloads.snapshot import WorkloadCache

# Compiled workloads are cached; a missing one is fetched in a thread, once for all coroutines that wait for it.


logger = logging.getLogger(__name__)
Key = tuple[str, str, str]


def compile_snapshot(snapshot: Snapshot) -> Compiled:
    """The snapshot's workload, compiled on first use, that is ready to decide with its model and policies."""
    result = snapshot.compiled.get("")
    return result or snapshot.compiled.setdefault("", KINDS[snapshot.spec.kind].engine.compile(snapshot))


def by_rule(workload: Compiled, rule: str) -> Compiled:
    """The same workload with the heuristic ``rule`` as its only policy, without agents; compiled on first use.

    If the rule can't decide any more (for example without its domain model), the default rule decides as a fallback.
    """
    snapshot = workload.snapshot
    by_rule = snapshot.compiled.get(rule)
    if by_rule is None:
        engine = KINDS[snapshot.spec.kind].engine
        there = rule in engine.rules(workload)
        alone = replace(
            snapshot,
            rule=rule if there else "",
            problem="" if there else f"rule {rule} no longer exists for this workload",
            agent_version=None,
            artifact=None,
            policies={},
            shadow=None,
            compiled={},
        )
        by_rule = snapshot.compiled.setdefault(rule, engine.compile(alone))
    return by_rule


class CompiledWorkloads:
    """Cache of compiled workloads, which are ready to decide; updated in the background while ``poll`` runs."""

    def __init__(self, snapshots: WorkloadCache) -> None:
        self._snapshots = snapshots
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="compile")
        self._fetching: dict[tuple[asyncio.AbstractEventLoop, Key], asyncio.Future[Compiled]] = {}

    async def get(self, workload: str, tenant: str, rule: str = "") -> Compiled:
        """The compiled workload, at most one polling interval old; ``rule``: the only rule to decide by, empty: the
        usual policies. Raises NotFound if there is no such workload."""
        result = self.peek(workload, tenant, rule)
        return result if result is not None else await self._fetch((workload, tenant, rule))

    def peek(self, workload: str, tenant: str, rule: str = "") -> Compiled | None:
        """The cached compiled workload; None if it must be fetched. ``rule``: the only rule to decide by, empty: the
        usual policies."""
        snapshot = self._snapshots.peek(workload, tenant)
        return None if snapshot is None else snapshot.compiled.get(rule)

    async def _fetch(self, key: Key) -> Compiled:
        loop = asyncio.get_running_loop()
        fetching = self._fetching.get((loop, key))
        if fetching is None:
            fetching = loop.run_in_executor(self._threads, self.fetch, *key)
            self._fetching[loop, key] = fetching
            fetching.add_done_callback(lambda _: self._fetching.pop((loop, key), None))
        return await asyncio.shield(fetching)

    def fetch(self, workload: str, tenant: str, rule: str = "") -> Compiled:
        """The compiled workload, for worker threads, as it may block; ``rule``: the only rule to decide by, empty: the
        usual policies. Raises NotFound if there is no such workload."""
        snapshot = compile_snapshot(self._snapshots.get(workload, tenant))
        return by_rule(snapshot, rule) if rule else snapshot

    def current(self, workload: str, tenant: str) -> Compiled:
        """The compiled workload as now in the database; blocking, for worker threads; raises NotFound without one."""
        return compile_snapshot(self._snapshots.current(workload, tenant))

    async def poll(self, seconds: float) -> None:
        """Check for changed workloads every ``seconds`` until cancelled; errors are logged."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            try:
                await loop.run_in_executor(self._threads, self._snapshots.poll)
            except SQLAlchemyError as error:
                logger.warning("can't look for changed workloads: %s", error)
            except Exception:  # an error must not end the polling: cached workloads stay in use
                logger.exception("looking for changed workloads failed")


# Shadows: agents whose decisions are recorded, but not served.
#
# A failing shadow neither changes nor delays the decision served: its error is recorded in its
# entry.


LARGEST_CACHE = 64


class Shadows:
    """Cache of a process's shadow agents, which decide without effect (the newest 64); thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int], Shadow] = OrderedDict()

    def get(self, workload_id: str, version: int) -> Shadow:
        """The shadow agent of this version; if it is gone or unusable, an entry with the reason instead."""
        key = (workload_id, version)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._load(workload_id, version)
                if len(self._known) > LARGEST_CACHE:
                    self._known.popitem(last=False)
            return self._known[key]

    def _load(self, workload_id: str, version: int) -> Shadow:
        with self._database.reading() as session:
            artifact = agents.artifact(session, workload_id, version)
        if artifact is None:
            return Shadow(version, None, f"agent {version} was deleted")
        try:
            return Shadow(version, load_artifact(artifact.artifact))
        except IncompatibleArtifact as error:
            return Shadow(version, None, f"agent {version} can't be used: {error}")


# Stored decisions, and decisions for a given state; read-only.


@cache
def _lacking(kind: str) -> dict[str, Any]:
    """Values by name, in the schema's order, for fields that a stored decision of a kind may lack: the field's default,
    None for a required field. The fields ``ADDED``, common to all kinds, are left out."""
    fields = KINDS[kind].decision.model_fields.items()
    return {
        name: None if field.is_required() else field.get_default(call_default_factory=True)
        for name, field in fields
        if name not in ADDED
    }


def encode_decision(decision: dict[str, Any]) -> bytes:
    """A stored decision as JSON, with its members in the order of its kind's schema."""
    kind = str(decision.get("kind", DEFAULT))
    known = {**decision, "kind": kind}
    own = {name: known.get(name, otherwise) for name, otherwise in _lacking(kind).items()}
    return msgspec.json.encode(own | {name: known[name] for name in ADDED if known.get(name)})


def of_run(database: Database, tenant: str, run: str, iteration: int | None) -> bytes:
    """The decision (JSON) after a run's last report, or after iteration ``iteration`` if that isn't None.

    Raises:
        NotFound: there is no such run, or that iteration isn't stored.
    """
    number = Run.next_iteration - 1 if iteration is None else iteration
    query = select(Run.next_iteration, Run.decision, Iteration, Run.kept_from).outerjoin(
        Iteration, (Iteration.run_id == Run.id) & (Iteration.iteration == number)
    )
    with database.reading() as session:
        run = full_id(session, tenant, Run, run, "/query/run")
        row = session.execute(query.where(Run.id == run, Run.tenant == tenant)).one_or_none()
    if row is None:
        raise NotFound(f"no run {run!r}; start one with POST /runs")
    following, initial, reported, kept_from = row
    if reported is not None:
        return encode_decision(reported.decision)
    if iteration is None:
        return encode_decision(initial)
    if iteration < (kept_from or 0):
        raise NotFound(f"iteration {iteration} of run {run} was deleted; the oldest kept is {kept_from}")
    raise NotFound(f"iteration {iteration} of run {run} isn't reported; the next one to report is {following}")


class StateDecisions:
    """Decides for states given in full, in batches per workload; bound to one event loop."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self._clock = clock
        self._batch: MicroBatch[Compiled, Any] = MicroBatch(self._evaluate)

    async def decide(self, compiled: Compiled, query: Query) -> bytes:
        """The decision (JSON) for the state in ``query``, whose parameters the workload's kind defines.

        Raises:
            InvalidInput: the state doesn't fit the workload, or its kind accepts no states.
        """
        return await self._batch.submit(
            compiled, KINDS[compiled.snapshot.spec.kind].engine.parse_state(compiled, query)
        )

    def _evaluate(self, compiled: Compiled, items: Sequence[Any]) -> list[bytes]:
        return KINDS[compiled.snapshot.spec.kind].engine.answer_states(compiled, items, self._clock())
