"""What the shadows of a batch of runs would have done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Shadow
from app.kinds.contract.policy import Situation
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.decisions.schemas import EncodedShadow
from app.kinds.iterative.policies import guard
from app.kinds.iterative.policies.artifact import check
from app.kinds.iterative.state import State
from app.kinds.iterative.step import step
from app.policies.artifact import Artifact
from app.policies.memory import Memories, Memory, recalled

logger = logging.getLogger(__name__)


class Consulted(NamedTuple):
    """What a shadow says of one run, and remembers of it from now on, [H]; None where it remembers nothing."""

    encoded: EncodedShadow
    memory: Memory | None = None


def consulted(
    compiled: Compiled,
    situation: Situation,
    done: NDArray[np.integer],
    shadows: Sequence[Shadow | None],
    memories: Sequence[Memories],
) -> list[Consulted | None]:
    """What each run's shadow would have decided, compared with the actions ``done`` [B]; None where a run has none.

    ``memories`` are what is remembered of each run.
    """
    answers: list[Consulted | None] = [None] * len(shadows)
    for shadow in {id(one): one for one in shadows if one is not None}.values():
        rows = [i for i, one in enumerate(shadows) if one is shadow]
        own = _rows(situation, np.array(rows))._replace(memory=recalled([memories[i] for i in rows], shadow.version))
        for row, answer in zip(rows, _consulted(compiled, own, done[rows], shadow), strict=True):
            answers[row] = answer
    return answers


def _consulted(compiled: Compiled, situation: Situation, done: NDArray[np.integer], shadow: Shadow) -> list[Consulted]:
    if shadow.artifact is None:
        return [_unable(shadow, shadow.problem)] * len(done)
    try:
        check(shadow.artifact, compiled.layout)
        return _steps(compiled, situation, done, shadow.version, shadow.artifact)
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        return [_unable(shadow, f"{type(error).__name__}: {error}")] * len(done)


def _unable(shadow: Shadow, problem: str) -> Consulted:
    return Consulted(EncodedShadow(shadow.version, None, agrees=False, gain=None, problem=problem))


def _rows(situation: Situation, rows: NDArray[np.integer]) -> Situation:
    state, seen = situation.state, situation.view
    return Situation(
        situation.projector,
        State(*(field[rows] for field in state)),
        seen._replace(observation=seen.observation[rows], mask=seen.mask[rows], outlook=seen.outlook[rows]),
    )


def _steps(
    compiled: Compiled, situation: Situation, done: NDArray[np.integer], version: int, made: Artifact
) -> list[Consulted]:
    """The shadow's guarded steps, and what the domain model expects of each over the step that was taken."""
    decided = guard.decide(situation, made)
    action, memory = decided.action, decided.memory
    levels = step(compiled.layout, situation.state.levels, action)
    index, rows = np.arange(len(action)), compiled.layout.index(levels)
    gain = situation.view.outlook[index, action] - situation.view.outlook[index, done]
    encoded = [
        EncodedShadow(
            version, compiled.allocation_text(int(row)).encoded, agrees=bool(same), gain=float(won), problem=None
        )
        for row, same, won in zip(rows, action == done, gain, strict=True)
    ]
    return [Consulted(one, None if memory is None else memory[i].copy()) for i, one in enumerate(encoded)]
