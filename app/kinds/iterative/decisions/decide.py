"""From states to decisions, a whole batch at a time: observe → policy → guard → forecast → words.

NumPy costs about the same for one run as for sixty, so everything numeric is done once per batch. Where a batch fails,
each of its runs is decided by itself; where a policy fails, the heuristic answers; where that fails too, the present
allocation is held. So no run's trouble is another's, and there is always an answer, which says what failed.
"""

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Shadow
from app.kinds.contract.policy import Situation
from app.kinds.contract.text import timestamp
from app.kinds.iterative.decisions import reasons
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.decisions.forecast import Forecast, forecast
from app.kinds.iterative.decisions.reasons import DecisionContext, Reason
from app.kinds.iterative.decisions.schemas import EncodedDecision, EncodedInterval, EncodedReason, EncodedShadow
from app.kinds.iterative.decisions.shadow import consulted
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.observation import view
from app.kinds.iterative.policies import guard
from app.kinds.iterative.policies.guard import Verdict
from app.kinds.iterative.state import State
from app.kinds.iterative.step import step
from app.policies.artifact import Artifact

logger = logging.getLogger(__name__)
Levels = NDArray[np.integer]


class Steps(NamedTuple):
    """The guarded steps of B runs.

    Attributes:
        levels: the allocation to take, [B, R].
        chosen: the allocation that the policy had chosen, [B, R].
        verdict: what the guard made of it, [B].
        outside: for each way of being outside of the experience, which runs are, [B].
        shadows: what each run's shadow would have done; empty when no run has one.
    """

    levels: Levels
    chosen: Levels
    verdict: list[int]
    outside: dict[str, NDArray[np.bool_]]
    shadows: list[EncodedShadow | None]


class Subject(NamedTuple):
    """Whom a decision is for: the run (None for a state given in full), its last reported iteration, its shadow."""

    run: str | None
    reported: int | None
    shadow: Shadow | None = None


def decide(compiled: Compiled, state: State, subjects: Sequence[Subject], now: datetime) -> list[bytes]:
    """One encoded decision per run of ``state`` (leading dimension B)."""
    try:
        return _answered(compiled, state, subjects, now, compiled.artifact, "")
    except Exception as error:
        logger.exception("workload %s: deciding for %d runs failed", compiled.snapshot.name, len(subjects))
        if len(subjects) > 1:
            return [decide(compiled, row(state, i), [subject], now)[0] for i, subject in enumerate(subjects)]
        return [_fallback(compiled, state, subjects[0], now, f"{type(error).__name__}: {error}")]


def _fallback(compiled: Compiled, state: State, subject: Subject, now: datetime, failure: str) -> bytes:
    failed = f"the policy failed ({failure})"
    try:
        return _answered(compiled, state, [subject], now, None, f"{failed}; {compiled.heuristic} answers")[0]
    except Exception:
        logger.exception("workload %s: the heuristic failed too", compiled.snapshot.name)
        return _held(
            compiled, state, subject, now, f"{failed}, and so did {compiled.heuristic}; the allocation is held"
        )


def _answered(
    compiled: Compiled,
    state: State,
    subjects: Sequence[Subject],
    now: datetime,
    artifact: Artifact | None,
    failure: str,
) -> list[bytes]:
    steps = _steps(compiled, state, subjects, artifact)
    if failure:
        return _render(
            compiled, state, steps, subjects, now, _Responder("fallback", compiled.heuristic, "fallback", failure)
        )
    name = artifact.policy.name if artifact else compiled.heuristic
    return _render(compiled, state, steps, subjects, now, _Responder(compiled.source, name, *compiled.preface))


def _steps(compiled: Compiled, state: State, subjects: Sequence[Subject], artifact: Artifact | None) -> Steps:
    situation = Situation(compiled.projector, state, view(compiled.projector, state))
    decided = guard.decide(situation, artifact)
    levels = step(compiled.layout, state.levels, decided.action)
    same = decided.chosen is decided.action
    chosen = levels if same else step(compiled.layout, state.levels, decided.chosen)
    wanted = [subject.shadow for subject in subjects]
    shadows = consulted(compiled, situation, decided.action, wanted) if any(wanted) else []
    return Steps(levels, chosen, decided.verdict.tolist(), decided.outside, shadows)


def row(state: State, index: int) -> State:
    """One run of a batch, as a batch of one."""
    parts: list[Any] = [field[index : index + 1] for field in state]
    return State(*parts)


class _Responder(NamedTuple):
    """Source and policy of decisions, and without an agent the reason: a code and a text; empty with one."""

    source: str
    policy: str
    code: str
    preface: str


def _render(
    compiled: Compiled, state: State, steps: Steps, subjects: Sequence[Subject], now: datetime, responder: _Responder
) -> list[bytes]:
    hold, after = compiled.layout.index(state.levels), compiled.layout.index(steps.levels)
    pause = compiled.pause(steps.levels - state.levels, state.iteration > 0)
    seen = forecast(compiled.projector, state, hold, after, pause)
    contexts = decision_contexts(compiled, state, seen, hold, after)
    intended = after if steps.chosen is steps.levels else compiled.layout.index(steps.chosen)
    moment = timestamp(now)
    predictions = _predictions(compiled, seen)
    out = []
    for i, (subject, context) in enumerate(zip(subjects, contexts, strict=True)):
        source, reason = _reason(
            compiled, steps, i, context, responder, compiled.allocation_text(int(intended[i])).words
        )
        done = steps.verdict[i] == Verdict.FINISHED
        decision = EncodedDecision(
            run=subject.run,
            workload=compiled.snapshot.name,
            kind="iterative",
            reported=subject.reported,
            iteration=int(state.iteration[i]),
            allocation=compiled.allocation_text(int(after[i])).encoded,
            delta=compiled.delta(int(hold[i]), int(after[i])),
            noop=not context.moved,
            source=source,
            agent=compiled.snapshot.agent_version,
            policy=responder.policy,
            reason=EncodedReason(reason.code, reason.text),
            predicted={} if done else predictions[i],
            valid_for_iterations=0 if done else 1,
            decided_at=moment,
            shadow=steps.shadows[i] if steps.shadows else None,
        )
        out.append(msgspec.json.encode(decision))
    return out


def _reason(
    compiled: Compiled, steps: Steps, i: int, context: DecisionContext, responder: _Responder, intended: str
) -> tuple[str, Reason]:
    """Who answers, and the reason: of the guard if it spoke, else of the policy, after whatever is to be said first."""
    verdict = steps.verdict[i]
    if verdict == Verdict.FINISHED:
        return responder.source, reasons.complete(compiled.layout)
    own = reasons.explain(compiled.layout, context)
    if verdict == Verdict.WITHIN_NOISE:
        return "guard", reasons.within_noise(own, context, intended)
    if verdict == Verdict.OUTSIDE_EXPERIENCE:
        causes = [cause for cause, runs in steps.outside.items() if runs[i]]
        return "guard", reasons.outside_experience(own, causes, compiled.heuristic)
    if responder.preface:
        return responder.source, Reason(responder.code, f"{responder.preface}: {own.text}")
    return responder.source, own


def decision_contexts(
    compiled: Compiled, state: State, seen: Forecast, hold: Levels, after: Levels
) -> list[DecisionContext]:
    """Each decision in plain numbers, told by the metric that is nearest to missing its target, or furthest beyond."""
    rows = np.arange(len(hold))
    worst = seen.excess[0].argmax(axis=1)
    untargeted = np.isneginf(seen.excess[0][rows, worst])
    columns = (
        np.where(untargeted, -1, worst).tolist(),
        state.targets[rows, worst].tolist(),
        seen.projected[:, rows, worst].T.tolist(),
        seen.excess[:, rows, worst].T.tolist(),
        seen.cost.T.tolist(),
        hold.tolist(),
        after.tolist(),
    )
    return [
        DecisionContext(
            metric,
            target,
            projected,
            excess,
            cost,
            here != there,
            compiled.allocation_text(here),
            compiled.allocation_text(there),
        )
        for metric, target, projected, excess, cost, here, there in zip(*columns, strict=True)
    ]


def _predictions(compiled: Compiled, seen: Forecast) -> list[dict[str, EncodedInterval]]:
    names, level = compiled.layout.metrics, compiled.projector.table.level
    rows = np.stack([seen.mean, seen.low, seen.high], axis=2).tolist()
    return [
        {
            name: EncodedInterval(values[0], values[1], values[2], level)
            for name, values in zip(names, metrics, strict=True)
        }
        for metrics in rows
    ]


def begin_with(compiled: Compiled, state: State, run: str | None, now: datetime) -> tuple[bytes, Levels]:
    """The first decision of one run that has reported nothing (B = 1), and the levels [R] that it allocates."""
    projector, layout = compiled.projector, compiled.layout
    levels = first_allocation(projector, state)
    hold, after = layout.index(layout.start_levels[None]), layout.index(levels)
    seen = forecast(projector, state, hold, after, np.zeros(1))
    context = decision_contexts(compiled, state, seen, hold, after)[0]
    informed = projector.table.informed
    reason = (
        reasons.first(layout, context) if informed else reasons.first_without_model(context, compiled.snapshot.problem)
    )
    decision = EncodedDecision(
        run=run,
        workload=compiled.snapshot.name,
        kind="iterative",
        reported=None,
        iteration=int(state.iteration[0]),
        allocation=context.decided.encoded,
        delta=compiled.delta(int(hold[0]), int(after[0])),
        noop=not context.moved,
        source="heuristic",
        agent=compiled.snapshot.agent_version,
        policy="static_best" if informed else "initial",
        reason=EncodedReason(reason.code, reason.text),
        predicted=_predictions(compiled, seen)[0] if informed else {},
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return msgspec.json.encode(decision), levels[0]


def _held(compiled: Compiled, state: State, subject: Subject, now: datetime, text: str) -> bytes:
    """Hold the present allocation: what is left when everything else has failed. It needs no domain model."""
    here = int(compiled.layout.index(state.levels)[0])
    decision = EncodedDecision(
        run=subject.run,
        workload=compiled.snapshot.name,
        kind="iterative",
        reported=subject.reported,
        iteration=int(state.iteration[0]),
        allocation=compiled.allocation_text(here).encoded,
        delta=compiled.delta(here, here),
        noop=True,
        source="fallback",
        agent=compiled.snapshot.agent_version,
        policy="hold",
        reason=EncodedReason("fallback", text),
        predicted={},
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return msgspec.json.encode(decision)
