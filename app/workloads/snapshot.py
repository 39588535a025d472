"""What a decision needs of a workload, compiled once and cached in the process.

Other processes change workloads: a worker publishes a model, another API process promotes an agent. Each such change
raises the workload's ``revision``, which this cache looks up at most every ``poll_seconds``; nothing else is read again
until the number has moved. ``get`` may read the database, ``peek`` never does, and ``poll`` looks up all cached
workloads with one query, so that a background task can keep ``peek`` answering.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.agents import repository as agents
from app.database.base import DEFAULT_TENANT
from app.database.engine import Database
from app.database.tables import Workload
from app.domain_models import repository as domain_models
from app.domain_models.repository import Table
from app.kinds.contract.base import IncompatibleModel
from app.kinds.registry import KINDS, Spec, layout_of, read_spec
from app.policies import artifact
from app.policies.artifact import Artifact
from app.policies.base import IncompatibleArtifact
from app.workloads import repository, service

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Serving:
    """A workload ready to decide for. Layout and model are its kind's own.

    Attributes:
        model: the table the champion was trained on; without a champion the latest; None before the first fit, or when
            it can't be used.
        agent_version: version of the champion; None when a heuristic answers.
        artifact: the champion's policy and what it was made for; None without a champion, or when it or its model
            can't be used.
        problem: why the model or the champion's artifact can't be used; empty when all is well.
    """

    workload_id: str
    name: str
    spec_version: int
    spec: Spec
    layout: Any
    model: Any
    model_version: int | None
    agent_version: int | None
    artifact: Artifact | None
    revision: int
    problem: str = ""


@dataclass
class _Entry:
    serving: Serving
    checked: float


class WorkloadCache:
    """Servings by workload name or id; safe to share between threads."""

    def __init__(self, database: Database, poll_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._poll_seconds = poll_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._ids: dict[tuple[str, str], str] = {}
        self._entries: dict[str, _Entry] = {}

    def peek(self, workload: str, tenant: str = DEFAULT_TENANT) -> Serving | None:
        """The cached serving when it is fresh; never reads the database."""
        entry = self._entry(workload, tenant)
        return entry.serving if entry is not None and self._fresh(entry) else None

    def get(self, workload: str, tenant: str = DEFAULT_TENANT) -> Serving:
        """The serving of a workload, read or refreshed when due; a refresh under way elsewhere isn't waited for.

        Raises:
            NotFound: no such workload.
        """
        entry = self._entry(workload, tenant)
        if entry is not None and self._fresh(entry):
            return entry.serving
        if entry is not None and self._lock.locked():
            return entry.serving
        with self._lock:
            return self._current(workload, tenant)

    def poll(self) -> None:
        """Look up the revisions of all cached workloads with one query; reload what changed, drop what is gone."""
        with self._lock:
            cached = dict(self._entries)
            with self._database.reading() as session:
                revisions = repository.revisions(session, list(cached)) if cached else {}
            now = self._clock()  # after the reading: else a slow one would leave nothing fresh, and all would wait
            for identifier, entry in cached.items():
                if identifier not in revisions:
                    self._drop(identifier)
                elif revisions[identifier] == entry.serving.revision:
                    entry.checked = now
                else:
                    self._reload(identifier)

    def invalidate(self, workload_id: str) -> None:
        """Forget a workload, so that this process sees its own change at once."""
        with self._lock:
            self._drop(workload_id)

    def _entry(self, workload: str, tenant: str) -> _Entry | None:
        identifier = self._ids.get((tenant, workload))
        return None if identifier is None else self._entries.get(identifier)

    def _fresh(self, entry: _Entry) -> bool:
        return self._clock() - entry.checked < self._poll_seconds

    def _current(self, workload: str, tenant: str) -> Serving:
        with self._database.reading() as session:
            row = service.require(session, tenant, workload)
            entry = self._entries.get(row.id)
            if entry is None or entry.serving.revision != row.revision:
                entry = _Entry(load(self._database, row), self._clock())
        entry.checked = self._clock()
        self._ids |= {(tenant, workload): row.id, (tenant, row.name): row.id, (tenant, row.id): row.id}
        self._entries[row.id] = entry
        return entry.serving

    def _reload(self, identifier: str) -> None:
        with self._database.reading() as session:
            row = session.get(Workload, identifier)
        if row is None:
            self._drop(identifier)
        else:
            self._entries[identifier] = _Entry(load(self._database, row), self._clock())

    def _drop(self, identifier: str) -> None:
        self._entries.pop(identifier, None)
        self._ids = {key: known for key, known in self._ids.items() if known != identifier}


def load(database: Database, workload: Workload) -> Serving:
    """Compile a workload row: its layout, model table and champion's policy."""
    spec = read_spec(workload.spec)
    with database.reading() as session:
        agent = agents.artifact(session, workload.id, workload.champion) if workload.champion is not None else None
        model = domain_models.table(session, workload.id, agent.model_version if agent else None)
    layout = layout_of(spec)
    readable, problem = _model(spec.kind, model, workload) if model else (None, "")
    made = None
    if agent is not None and not problem:
        made, problem = _artifact(agent.artifact, layout, workload)
    return Serving(
        workload_id=workload.id,
        name=workload.name,
        spec_version=workload.spec_version,
        spec=spec,
        layout=layout,
        model=readable,
        model_version=model.version if model and readable is not None else None,
        agent_version=agent.version if agent else None,
        artifact=made,
        revision=workload.revision,
        problem=problem,
    )


def _model(kind: str, stored: Table, workload: Workload) -> tuple[Any, str]:
    try:
        return KINDS[kind].model(stored.table), ""
    except IncompatibleModel as error:
        problem = f"model {stored.version} can't be used: {error}"
        logger.exception("workload %s: %s", workload.name, problem)
        return None, problem


def _artifact(data: bytes, layout: Any, workload: Workload) -> tuple[Artifact | None, str]:
    try:
        made = artifact.load(data)
        made.check(layout)
    except IncompatibleArtifact as error:
        problem = f"agent {workload.champion} can't be used: {error}"
        logger.exception("workload %s: %s", workload.name, problem)
        return None, problem
    return made, ""
