"""Shadows: agents that are consulted too, and whose steps are only written down.

A shadow can neither change nor delay by its failure what is answered: whatever goes wrong with it is told in its entry.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from app.agents import repository as agents
from app.database.engine import Database
from app.kinds.contract.engine import Shadow
from app.kinds.registry import load_artifact
from app.policies.base import IncompatibleArtifact

LARGEST_CACHE = 64


class Shadows:
    """The shadows of a process, loaded once each; safe to share between threads."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, int], Shadow] = OrderedDict()

    def get(self, workload_id: str, version: int) -> Shadow:
        """One version of a workload's agent."""
        key = (workload_id, version)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._load(workload_id, version)
                if len(self._known) > LARGEST_CACHE:
                    self._known.popitem(last=False)
            return self._known[key]

    def _load(self, workload_id: str, version: int) -> Shadow:
        with self._database.reading() as session:
            found = agents.artifact(session, workload_id, version)
        if found is None:
            return Shadow(version, None, f"agent {version} is not there any more")
        try:
            return Shadow(version, load_artifact(found.artifact))
        except IncompatibleArtifact as error:
            return Shadow(version, None, f"agent {version} can't be used: {error}")
