"""From states to decisions for queues: scene → order → mechanism → nodes → words.

Where a policy fails, the spec's strategy answers; where that fails too, nothing starts. So there is always an answer,
which says what failed.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple

import msgspec
import numpy as np

from app.decisions.shadow import Shadow
from app.kinds.contract.base import FieldIssue
from app.kinds.contract.text import timestamp
from app.kinds.workflow.decisions.compiled import Basis
from app.kinds.workflow.decisions.reasons import reason
from app.kinds.workflow.decisions.schemas import (
    EncodedNodes,
    EncodedPlacement,
    EncodedQueueDecision,
    EncodedQueueReason,
    EncodedQueueShadow,
    EncodedWarning,
)
from app.kinds.workflow.queue.state import State
from app.kinds.workflow.scheduling.decide import Decided, decide
from app.kinds.workflow.scheduling.situation import Scene
from app.policies.artifact import Artifact

logger = logging.getLogger(__name__)


class Subject(NamedTuple):
    """Whom a decision is for: the run, its last report, its shadow, and what looked wrong in the report."""

    run: str
    reported: int | None
    shadow: Shadow | None = None
    warnings: tuple[FieldIssue, ...] = ()


def answer(basis: Basis, state: State, subject: Subject, now: datetime) -> tuple[bytes, State]:
    """The encoded decision for one run, and its state with what the decision commits to."""
    scene = basis.scene(state)
    serving, agent, failed = basis.serving, basis.agent, ""
    try:
        decided = checked(basis, scene, agent)
    except Exception as error:
        if agent is None:
            logger.exception("workload %s: deciding failed", serving.name)
            return _nothing(basis, state, subject, now, f"deciding failed ({type(error).__name__}: {error})"), state
        logger.exception("workload %s: agent %s failed", serving.name, serving.agent_version)
        failed = f"the policy failed ({type(error).__name__}: {error}); {basis.standing} answers"
        return _fallen_back(basis, scene, subject, now, failed)
    name = agent.policy.name if agent else basis.standing
    told = reason(scene, decided, basis.preface)
    return _encoded(basis, scene, decided, subject, now, (basis.source, name, told)), decided.state


def _fallen_back(basis: Basis, scene: Scene, subject: Subject, now: datetime, failure: str) -> tuple[bytes, State]:
    try:
        decided = checked(basis, scene, None)
    except Exception as error:
        logger.exception("workload %s: the strategy failed too", basis.serving.name)
        text = f"{failure}, and failed too ({type(error).__name__}: {error})"
        return _nothing(basis, scene.state, subject, now, text), scene.state
    told = reason(scene, decided, ("fallback", failure))
    return _encoded(basis, scene, decided, subject, now, ("fallback", basis.standing, told)), decided.state


def checked(basis: Basis, scene: Scene, artifact: Artifact | None) -> Decided:
    """Ask who chooses, and make sure that it said something of every ready task.

    Raises:
        ValueError: it did not.
    """
    choose = basis.chooser(artifact)
    decided = decide(scene, choose)
    if not np.isfinite(decided.choice.scores).all():
        raise ValueError("scores that are no numbers")
    return decided


def _encoded(
    basis: Basis,
    scene: Scene,
    decided: Decided,
    subject: Subject,
    now: datetime,
    voice: tuple[str, str, EncodedQueueReason],
) -> bytes:
    names, source, policy, told = scene.layout.names, *voice
    start, release = decided.renting
    placements = _placements(scene, decided)
    decision = EncodedQueueDecision(
        run=subject.run,
        workload=basis.serving.name,
        kind="workflow",
        reported=subject.reported,
        iteration=0 if subject.reported is None else subject.reported + 1,
        now=scene.now,
        placements=placements,
        nodes=EncodedNodes([names[j] for j in start], [names[j] for j in release]),
        noop=not (placements or start or release),
        source=source,
        agent=basis.serving.agent_version,
        policy=policy,
        reason=told,
        warnings=[EncodedWarning(*warning) for warning in subject.warnings],
        valid_for_iterations=1,
        decided_at=timestamp(now),
        shadow=None if subject.shadow is None else _beside(basis, scene, decided, subject.shadow),
    )
    return msgspec.json.encode(decision)


def _placements(scene: Scene, decided: Decided) -> list[EncodedPlacement]:
    names, nodes, now = scene.queue.names, scene.layout.names, scene.now
    return [EncodedPlacement(names[row], nodes[node], now) for row, node in decided.started.starts]


def _beside(basis: Basis, scene: Scene, done: Decided, shadow: Shadow) -> EncodedQueueShadow:
    """What a shadow would have decided; whatever goes wrong with it is told here, and changes nothing."""
    if shadow.artifact is None:
        return EncodedQueueShadow(shadow.version, None, [], agrees=False, gain=None, problem=shadow.problem)
    try:
        shadow.artifact.check(basis.layout)
        decided = checked(basis, scene, shadow.artifact)
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", basis.serving.name, shadow.version)
        problem = f"{type(error).__name__}: {error}"
        return EncodedQueueShadow(shadow.version, None, [], agrees=False, gain=None, problem=problem)
    same = set(decided.started.starts) == set(done.started.starts)
    placements = _placements(scene, decided)
    return EncodedQueueShadow(shadow.version, decided.choice.strategy, placements, agrees=same, gain=None, problem=None)


def _nothing(basis: Basis, state: State, subject: Subject, now: datetime, text: str, code: str = "fallback") -> bytes:
    """Start nothing: before the first report, and when everything else has failed."""
    spec, begun = basis.layout.spec, code != "fallback"
    decision = EncodedQueueDecision(
        run=subject.run,
        workload=basis.serving.name,
        kind="workflow",
        reported=subject.reported,
        iteration=0 if subject.reported is None else subject.reported + 1,
        now=None if begun else state.now,
        placements=[],
        nodes=EncodedNodes([], []),
        noop=True,
        source="heuristic" if begun else "fallback",
        agent=basis.serving.agent_version,
        policy=basis.standing,
        reason=EncodedQueueReason(code, text, spec.strategy, spec.backfilling),
        warnings=[EncodedWarning(*warning) for warning in subject.warnings],
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return msgspec.json.encode(decision)


def begun(basis: Basis, state: State, run: str, now: datetime) -> bytes:
    """The decision that a run starts with."""
    text = "nothing is reported yet: report the queue as iteration 0"
    return _nothing(basis, state, Subject(run, None), now, text, "begun")
