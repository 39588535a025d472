"""From states to decisions for queues: situation → order → mechanism → nodes → words.

Where a policy fails, the spec's strategy answers; where that fails too, nothing starts. So there is always an answer,
which says what failed.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NamedTuple

import msgspec
import numpy as np

from app.kinds.contract.engine import Shadow
from app.kinds.contract.inputs import FieldIssue
from app.kinds.contract.text import timestamp
from app.kinds.workflow.decisions.compiled import Compiled
from app.kinds.workflow.decisions.reasons import reason
from app.kinds.workflow.decisions.schemas import (
    EncodedNodes,
    EncodedPlacement,
    EncodedQueueDecision,
    EncodedQueueReason,
    EncodedQueueShadow,
    EncodedWarning,
)
from app.kinds.workflow.plans.following import PLAN, followed
from app.kinds.workflow.plans.planner import Planned
from app.kinds.workflow.policies.artifact import check
from app.kinds.workflow.queue.state import WAITING, State
from app.kinds.workflow.scheduling.decide import Decided, decide
from app.kinds.workflow.scheduling.situation import QueueSituation
from app.policies.artifact import Artifact

logger = logging.getLogger(__name__)


class Subject(NamedTuple):
    """Whom a decision is for: the run, its last report, its shadow, and what looked wrong in the report."""

    run: str
    reported: int | None
    shadow: Shadow | None = None
    warnings: tuple[FieldIssue, ...] = ()


def answer(compiled: Compiled, state: State, subject: Subject, now: datetime) -> tuple[bytes, State]:
    """The encoded decision for one run, and its state with what the decision commits to."""
    situation = compiled.situation(state)
    snapshot, agent, failed = compiled.snapshot, compiled.agent, ""
    try:
        plan = compiled.planned(situation)
        decided = by_plan(compiled, situation, plan) if plan else checked(compiled, situation, agent)
    except Exception as error:
        if agent is None:
            logger.exception("workload %s: deciding failed", snapshot.name)
            return _nothing(compiled, state, subject, now, f"deciding failed ({type(error).__name__}: {error})"), state
        logger.exception("workload %s: agent %s failed", snapshot.name, snapshot.agent_version)
        failed = f"the policy failed ({type(error).__name__}: {error}); {compiled.heuristic} answers"
        return _fallen_back(compiled, situation, subject, now, failed)
    why = reason(situation, decided, compiled.preface, plan.text if plan else "")
    return _encoded(
        compiled, situation, decided, subject, now, (*_answering(compiled, decided, plan), why)
    ), decided.state


def _answering(compiled: Compiled, decided: Decided, plan: Planned | None) -> tuple[str, str]:
    """Source and policy of a decision, as it names them."""
    if plan is None:
        return compiled.source, compiled.agent.policy.name if compiled.agent else compiled.heuristic
    if decided.choice.strategy == PLAN:
        return "agent", PLAN
    return "heuristic", f"{decided.choice.strategy}+{compiled.layout.spec.backfilling}"


def by_plan(compiled: Compiled, situation: QueueSituation, planned: Planned) -> Decided:
    """What a plan says; HEFT where there is none, or none that is better."""
    if planned.plan is not None and planned.plan.followed:
        return followed(situation, planned.plan)
    decided = decide(situation, compiled.heft)
    return decided._replace(state=decided.state._replace(plan=planned.plan))


def _fallen_back(
    compiled: Compiled, situation: QueueSituation, subject: Subject, now: datetime, failure: str
) -> tuple[bytes, State]:
    try:
        decided = checked(compiled, situation, None)
    except Exception as error:
        logger.exception("workload %s: the strategy failed too", compiled.snapshot.name)
        text = f"{failure}, and failed too ({type(error).__name__}: {error})"
        return _nothing(compiled, situation.state, subject, now, text), situation.state
    why = reason(situation, decided, ("fallback", failure))
    return _encoded(compiled, situation, decided, subject, now, ("fallback", compiled.heuristic, why)), decided.state


def checked(compiled: Compiled, situation: QueueSituation, artifact: Artifact | None) -> Decided:
    """Ask who chooses, and make sure that it said something of every ready task.

    Raises:
        ValueError: it did not.
    """
    choose = compiled.chooser(artifact)
    decided = decide(situation, choose)
    if not np.isfinite(decided.choice.scores).all():
        raise ValueError("scores that are no numbers")
    return decided


def _encoded(
    compiled: Compiled,
    situation: QueueSituation,
    decided: Decided,
    subject: Subject,
    now: datetime,
    responder: tuple[str, str, EncodedQueueReason],
) -> bytes:
    names, source, policy, why = situation.layout.names, *responder
    start, release = decided.renting
    placements = _placements(situation, decided)
    decision = EncodedQueueDecision(
        run=subject.run,
        workload=compiled.snapshot.name,
        kind="workflow",
        reported=subject.reported,
        iteration=0 if subject.reported is None else subject.reported + 1,
        now=situation.now,
        placements=placements,
        nodes=EncodedNodes([names[j] for j in start], [names[j] for j in release]),
        noop=not (placements or start or release),
        source=source,
        agent=compiled.snapshot.agent_version,
        policy=policy,
        reason=why,
        warnings=[EncodedWarning(*warning) for warning in subject.warnings],
        valid_for_iterations=1,
        decided_at=timestamp(now),
        shadow=None if subject.shadow is None else _consulted(compiled, situation, decided, subject.shadow),
        **_counted(situation, decided),
        wake_at=min(decided.started.reserved.starts.values(), default=None),
    )
    return msgspec.json.encode(decision)


def _counted(situation: QueueSituation, decided: Decided) -> dict[str, int]:
    """How many tasks wait and run once those are started, and the processors of the latter."""
    queue = situation.queue
    runs = queue.node != WAITING
    runs[[row for row, _ in decided.started.starts]] = True
    running = int(runs.sum())
    return {
        "waiting": len(queue) - running,
        "running": running,
        "busy_processors": int(queue.processors[runs].sum()),
    }


def _placements(situation: QueueSituation, decided: Decided) -> list[EncodedPlacement]:
    names, nodes, now = situation.queue.names, situation.layout.names, situation.now
    return [EncodedPlacement(names[row], nodes[node], now) for row, node in decided.started.starts]


def _consulted(compiled: Compiled, situation: QueueSituation, done: Decided, shadow: Shadow) -> EncodedQueueShadow:
    """What a shadow would have decided; whatever goes wrong with it is told here, and changes nothing."""
    if shadow.artifact is None:
        return EncodedQueueShadow(shadow.version, None, [], agrees=False, gain=None, problem=shadow.problem)
    try:
        check(shadow.artifact, compiled.layout)
        planned = compiled.agent is not None and situation.queue.linked  # whichever agent is promoted
        decided = done if planned else checked(compiled, situation, shadow.artifact)
    except Exception as error:
        logger.exception("workload %s: shadow %d failed", compiled.snapshot.name, shadow.version)
        problem = f"{type(error).__name__}: {error}"
        return EncodedQueueShadow(shadow.version, None, [], agrees=False, gain=None, problem=problem)
    same = set(decided.started.starts) == set(done.started.starts)
    placements = _placements(situation, decided)
    return EncodedQueueShadow(shadow.version, decided.choice.strategy, placements, agrees=same, gain=None, problem=None)


def _nothing(
    compiled: Compiled, state: State, subject: Subject, now: datetime, text: str, code: str = "fallback"
) -> bytes:
    """Start nothing: before the first report, and when everything else has failed."""
    spec, begun = compiled.layout.spec, code != "fallback"
    decision = EncodedQueueDecision(
        run=subject.run,
        workload=compiled.snapshot.name,
        kind="workflow",
        reported=subject.reported,
        iteration=0 if subject.reported is None else subject.reported + 1,
        now=None if begun else state.now,
        placements=[],
        nodes=EncodedNodes([], []),
        noop=True,
        source="heuristic" if begun else "fallback",
        agent=compiled.snapshot.agent_version,
        policy=compiled.heuristic,
        reason=EncodedQueueReason(code, text, compiled.strategy, spec.backfilling),
        warnings=[EncodedWarning(*warning) for warning in subject.warnings],
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return msgspec.json.encode(decision)


def begun(compiled: Compiled, state: State, run: str, now: datetime) -> bytes:
    """The decision that a run starts with."""
    text = "nothing is reported yet: report the queue as iteration 0"
    return _nothing(compiled, state, Subject(run, None), now, text, "begun")
