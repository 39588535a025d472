"""Cache of workloads ready for decisions.

Other processes change workloads: a worker publishes a model, another API process promotes an agent. Each change
increments the workload's ``revision``, which the cache checks at most every ``poll_seconds``; it reloads the workload
only if the number has changed. Changes by this process are seen at once. ``get`` may read the database, ``current``
always does, ``peek`` never does, and ``poll`` checks all cached workloads with one query, so that a background task can
keep ``peek`` successful.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from app.agents import repository as agents
from app.agents.repository import Artifact
from app.caps import service as caps
from app.database.base import DEFAULT_TENANT
from app.database.engine import Database
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.domain_models.repository import Table
from app.drift import repository as adaptations
from app.exogenous.rows import observed_counts
from app.http.pagination import json_size
from app.kinds.contract.engine import DEFAULT_ROLE, RolePolicy, Shadow, Snapshot
from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.forecasting.answer import next_hour
from app.kinds.registry import KINDS, layout_of, load_artifact, read_spec
from app.policies.base import IncompatibleArtifact
from app.workloads import members, priors, service

LEAST_BYTES, FACTOR = 64 << 10, 4
"""Memory of a cached workload in bytes: at least, and per stored byte of its data."""

logger = logging.getLogger(__name__)
Key = tuple[str, str]


@dataclass
class _Entry:
    snapshot: Snapshot
    checked: float
    last_used: int
    """Sequence number of the last use; the smallest is evicted first."""
    keys: tuple[Key, Key]
    """(tenant, name) and (tenant, id)."""
    changed: bool = False
    """Changed by this process: must be checked before its next use."""

    @property
    def size(self) -> int:
        """Approximate memory in bytes."""
        return LEAST_BYTES + FACTOR * self.snapshot.stored_bytes


class WorkloadCache:
    """Cache of snapshots of workloads (layout, model, policies and all else that decisions need), by name or id;
    thread-safe.

    The most recently used take about ``size_bytes`` at most; one always remains. ``poll_seconds``: age at which a
    snapshot is checked; ``clock``: monotonic seconds.
    """

    def __init__(
        self,
        database: Database,
        poll_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        size_bytes: int = 256 << 20,
    ) -> None:
        self._database = database
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._size_bytes = size_bytes
        self._lock = threading.Lock()
        self._ids: dict[Key, str] = {}
        self._entries: dict[str, _Entry] = {}
        self._uses = itertools.count()
        self._changes = 0
        database.watchers.append(self._forget)

    def peek(self, workload: str, tenant: str = DEFAULT_TENANT) -> Snapshot | None:
        """The cached snapshot if it is fresh, else None; never reads the database."""
        entry = self._entries.get(self._ids.get((tenant, workload), ""))
        if entry is None or entry.changed or self._clock() - entry.checked >= self._poll_seconds:
            return None
        entry.last_used = next(self._uses)
        return entry.snapshot

    def get(self, workload: str, tenant: str = DEFAULT_TENANT) -> Snapshot:
        """The snapshot of a workload, loaded or checked if due; doesn't wait for a check by another thread.

        Raises NotFound if there is no such workload, MissingKind or BrokenRow if what is stored can't be read.
        """
        snapshot = self.peek(workload, tenant)
        if snapshot is not None:
            return snapshot
        entry = self._entries.get(self._ids.get((tenant, workload), ""))
        if entry is not None and not entry.changed and self._lock.locked():
            return entry.snapshot
        with self._lock:
            return self._current(workload, tenant)

    def current(self, workload: str, tenant: str = DEFAULT_TENANT) -> Snapshot:
        """The snapshot of a workload as of now; always checks the database. Raises NotFound if there is no such
        workload, MissingKind or BrokenRow if its spec can't be read."""
        with self._lock:
            return self._current(workload, tenant)

    def poll(self) -> None:
        """Check all cached workloads with one query, reload changed ones, and drop deleted ones."""
        with self._lock:
            cached = dict(self._entries)
            with self._database.reading() as session:
                revisions = members.revisions(session, list(cached)) if cached else {}
            now = self._clock()  # after the reading: else a slow one would leave nothing fresh, and all would wait
            for identifier, entry in cached.items():
                if identifier not in revisions:
                    self._drop(identifier)
                elif revisions[identifier] == entry.snapshot.revision and not entry.changed:
                    entry.checked = now
                else:
                    self._renew(identifier, entry)

    def _renew(self, identifier: str, entry: _Entry) -> None:
        """Reload a changed workload; if that fails, keep the old snapshot and log the error. Raises SQLAlchemyError if
        the database fails."""
        try:
            with self._database.reading() as session:
                row = session.get(Workload, identifier)
            if row is None:
                self._drop(identifier)
            else:
                last_used = self._entries[identifier].last_used
                self._load(row, last_used)
        except SQLAlchemyError:
            raise
        except Exception:
            logger.exception("workload %s: its change can't be loaded", entry.snapshot.name)
            entry.checked, entry.changed = self._clock(), False

    def _forget(self, workload_ids: set[str]) -> None:
        """Mark workloads that this process has changed, to be checked before their next use."""
        self._changes += 1  # first: a concurrent load may have read the old state
        for identifier in workload_ids:
            entry = self._entries.get(identifier)
            if entry is not None:
                entry.changed = True

    def _current(self, workload: str, tenant: str) -> Snapshot:
        before = self._changes
        with self._database.reading() as session:
            row = service.require(session, tenant, workload)
            entry = self._entries.get(row.id)
            if entry is None or entry.snapshot.revision != row.revision:
                entry = self._load(row, next(self._uses))
                self._make_room()
        entry.last_used = next(self._uses)
        entry.checked, entry.changed = self._clock(), False
        entry.changed |= self._changes != before
        return entry.snapshot

    def _make_room(self) -> None:
        """Evict the least recently used workloads down to 90 % of the limit."""
        total = sum(entry.size for entry in self._entries.values())
        if total <= self._size_bytes:
            return
        oldest = sorted(self._entries.items(), key=lambda item: item[1].last_used)
        for identifier, entry in oldest[:-1]:
            if total <= 0.9 * self._size_bytes:
                break
            self._drop(identifier)
            total -= entry.size

    def _load(self, row: Workload, last_used: int) -> _Entry:
        keys, before = ((row.tenant, row.name), (row.tenant, row.id)), self._changes
        entry = _Entry(load(self._database, row), self._clock(), last_used, keys)
        self._entries[row.id] = entry
        self._ids |= dict.fromkeys(keys, row.id)
        entry.changed |= self._changes != before
        return entry

    def _drop(self, identifier: str) -> None:
        entry = self._entries.pop(identifier, None)
        for key in () if entry is None else entry.keys:
            if self._ids.get(key) == identifier:  # the name may be another workload's by now
                del self._ids[key]


def load(database: Database, workload: Workload) -> Snapshot:
    """Load a workload's snapshot: its layout, model, champions' policies, shadow, forecasts and members.

    A model or policy that can't be used is logged and left out, with the problem. Raises BrokenRow or MissingKind if
    the spec can't be read.
    """
    spec = read_spec(workload.spec)
    with database.reading() as session:
        stored = {role: agents.artifact(session, workload.id, one.version) for role, one in workload.champions.items()}
        agent = max((one for one in stored.values() if one is not None), key=lambda one: one.version, default=None)
        version = adaptations.shadow(session, workload.id)
        tried = None if version is None else agents.artifact(session, workload.id, version)
        own = agent.model_version if agent else 0  # 0: trained on samples alone, before any model was fitted
        model = domain_models.table(session, workload.id, own or None)
        readable, problem = _model(spec.kind, model, workload) if model else (None, "")
        forecasters = KINDS[spec.kind].forecasters(readable) if readable is not None else ()
        counted = observed_counts(session, workload.id, forecasters) if forecasters else {}
        described = members.describe_members(session, workload.tenant, spec)
        shared = caps.shared(session, workload.tenant, spec) if KINDS[spec.kind].engine.serving.metered else {}
    layout = layout_of(spec)
    policies = {role: _policy(row, layout, workload, problem) for role, row in stored.items() if row is not None}
    champion = policies.get(DEFAULT_ROLE)
    sizes = [len(model.table) if model else 0, *(len(one.artifact) for one in (*stored.values(), tried) if one)]
    return Snapshot(
        workload_id=workload.id,
        name=workload.name,
        spec_version=workload.spec_version,
        spec=spec,
        layout=layout,
        model=readable,
        model_version=model.version if model and readable is not None else None,
        agent_version=champion.version if champion else None,
        artifact=champion.artifact if champion else None,
        revision=workload.revision,
        problem=champion.problem if champion else problem,
        policies=policies,
        shadow=None if tried is None else Shadow(*_policy(tried, layout, workload, "")),
        prior=priors.prior_of(workload) if readable is None else None,
        coming=next_hour(forecasters, counted),
        members=described,
        caps=shared,
        stored_bytes=sum(sizes) + json_size(workload.spec),
    )


def _model(kind: str, stored: Table, workload: Workload) -> tuple[Any, str]:
    try:
        return KINDS[kind].model(stored.table), ""
    except IncompatibleModel as error:
        problem = f"model {stored.version} can't be used: {error}"
        logger.exception("workload %s: %s", workload.name, problem)
        return None, problem


def _policy(stored: Artifact, layout: Any, workload: Workload, problem: str) -> RolePolicy:
    """An agent's policy, loaded and checked; None and the reason, if it or its model can't be used."""
    if problem:
        return RolePolicy(stored.version, None, problem)
    try:
        artifact = load_artifact(stored.artifact)
        KINDS[workload.kind].check(artifact, layout)
    except IncompatibleArtifact as error:
        problem = f"agent {stored.version} can't be used: {error}"
        logger.exception("workload %s: %s", workload.name, problem)
        return RolePolicy(stored.version, None, problem)
    return RolePolicy(stored.version, artifact)
