"""Shadows: agents that are asked beside the one that answers, and whose steps are only written down.

A shadow can neither change nor delay by its failure what is answered: whatever goes wrong with it is told in its entry.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.agents import repository as agents
from app.database.engine import Database
from app.decisions.basis import Basis
from app.decisions.schemas import EncodedShadow
from app.kinds.base import Situation
from app.kinds.iterative.state import State
from app.kinds.iterative.step import step
from app.policies import artifact, guard
from app.policies.artifact import Artifact
from app.policies.base import IncompatibleArtifact

logger = logging.getLogger(__name__)
LARGEST_CACHE = 64


@dataclass(frozen=True, eq=False)
class Shadow:
    """An agent to be asked beside; `artifact` is None where it can't be used, and `problem` says why."""

    version: int
    artifact: Artifact | None
    problem: str = ""


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
            return Shadow(version, artifact.load(found.artifact))
        except IncompatibleArtifact as error:
            return Shadow(version, None, f"agent {version} can't be used: {error}")


def beside(
    basis: Basis, situation: Situation, done: NDArray[np.integer], shadows: Sequence[Shadow | None]
) -> list[EncodedShadow | None]:
    """What each run's shadow would have decided beside the actions ``done`` [B]; None where a run has none."""
    told: list[EncodedShadow | None] = [None] * len(shadows)
    for shadow in {id(one): one for one in shadows if one is not None}.values():
        rows = [i for i, one in enumerate(shadows) if one is shadow]
        for row, entry in zip(rows, _asked(basis, situation, done, shadow, np.array(rows)), strict=True):
            told[row] = entry
    return told


def _asked(
    basis: Basis, situation: Situation, done: NDArray[np.integer], shadow: Shadow, rows: NDArray[np.integer]
) -> list[EncodedShadow]:
    if shadow.artifact is None:
        return [_unable(shadow, shadow.problem)] * len(rows)
    try:
        shadow.artifact.check(basis.layout)
        return _steps(basis, _rows(situation, rows), done[rows], shadow.version, shadow.artifact)
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", basis.serving.name, shadow.version)
        return [_unable(shadow, f"{type(error).__name__}: {error}")] * len(rows)


def _unable(shadow: Shadow, problem: str) -> EncodedShadow:
    return EncodedShadow(shadow.version, None, agrees=False, gain=None, problem=problem)


def _rows(situation: Situation, rows: NDArray[np.integer]) -> Situation:
    state, seen = situation.state, situation.view
    return Situation(
        situation.projector,
        State(*(field[rows] for field in state)),
        seen._replace(observation=seen.observation[rows], mask=seen.mask[rows], outlook=seen.outlook[rows]),
    )


def _steps(
    basis: Basis, situation: Situation, done: NDArray[np.integer], version: int, made: Artifact
) -> list[EncodedShadow]:
    """The shadow's guarded steps, and what the domain model expects of each over the step that was taken."""
    action = guard.decide(situation, made).action
    levels = step(basis.layout, situation.state.levels, action)
    index, places = np.arange(len(action)), basis.layout.index(levels)
    gain = situation.view.outlook[index, action] - situation.view.outlook[index, done]
    return [
        EncodedShadow(version, basis.place(int(place)).encoded, agrees=bool(same), gain=float(won), problem=None)
        for place, same, won in zip(places, action == done, gain, strict=True)
    ]
