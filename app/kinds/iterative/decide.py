"""Deciding: the allocation of the next iteration, for a batch of runs, and what a shadow would decide."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from datetime import datetime
from itertools import compress, repeat
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.engine import Shadow
from app.kinds.contract.inputs import timestamp
from app.kinds.contract.policy import Situation
from app.kinds.iterative import policies as guard
from app.kinds.iterative import reasons
from app.kinds.iterative.chance import asked, assured
from app.kinds.iterative.compiled import NONE, Compiled, noted
from app.kinds.iterative.heuristics import MODEL_PREDICTIVE, continuation, first_allocation
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import everywhere, view
from app.kinds.iterative.policies import Decided, Verdict, check
from app.kinds.iterative.prediction import risks
from app.kinds.iterative.reasons import DecisionContext, Forecast, Reason, forecast
from app.kinds.iterative.report import EncodedDecision, EncodedInterval, EncodedReason, EncodedShadow
from app.kinds.iterative.spec import SECONDS
from app.kinds.iterative.state import State
from app.policies.artifact import NOTHING, Artifact, Memories, Memory, kept, recalled

# What the shadows of a batch of runs would have done.


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


# From states to decisions, a whole batch at a time: observe → policy → guard → forecast → words.
#
# NumPy costs about the same for one run as for sixty, so everything numeric is done once per batch. Where a batch
# fails, each of its runs is decided by itself; where a policy fails, the heuristic answers; where that fails too, the
# present allocation is held. So no run's trouble is another's, and there is always an answer, which says what failed.


Levels = NDArray[np.integer]
T = TypeVar("T")


class Steps(NamedTuple):
    """The guarded steps of B runs.

    Attributes:
        levels: the allocation to take, [B, R].
        decided: what the guard made of the policy's actions.
        required: what a change must gain.
        shadows: what each run's shadow would have done; None where it has none.
        then: row of the allocation grid to go on with after the next iteration, [B]; −1: ``levels`` are held.
    """

    levels: Levels
    decided: Decided
    required: float
    shadows: list[Consulted | None]
    then: NDArray[np.integer]


class Subject(msgspec.Struct, frozen=True):
    """Whom a decision is for.

    Attributes:
        run: None for a state given in full.
        reported: the last reported iteration.
        notices: codes of what its last decision said beside the reason.
        memories: what agents remember of it.
    """

    run: str | None
    reported: int | None
    shadow: Shadow | None = None
    notices: frozenset[int] = frozenset()
    memories: Memories = NOTHING


class Answer(msgspec.Struct, frozen=True):
    """An encoded decision, codes of what it has to say beside its reason, be it said or not, and what agents remember
    of the run from now on; see ``Answered`` for the rest.
    """

    decision: bytes
    notices: frozenset[int]
    memories: Memories = NOTHING
    risk: str | None = ""
    expected_seconds: float | None = None


def decide(compiled: Compiled, state: State, subjects: Sequence[Subject], now: datetime) -> list[Answer]:
    """The answer for each run of ``state`` (leading dimension B)."""
    try:
        return _answered(compiled, state, subjects, now, compiled.artifact)
    except Exception as error:
        logger.exception("workload %s: deciding for %d runs failed", compiled.snapshot.name, len(subjects))
        if len(subjects) > 1:
            return [decide(compiled, row(state, i), [subject], now)[0] for i, subject in enumerate(subjects)]
        return [_fallback(compiled, state, subjects[0], now, f"{type(error).__name__}: {error}")]


def _fallback(compiled: Compiled, state: State, subject: Subject, now: datetime, failure: str) -> Answer:
    failed = f"the policy failed ({failure})"
    try:
        return _answered(compiled, state, [subject], now, None, failed)[0]
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
    failure: str = "",
) -> list[Answer]:
    rules, steps = compiled.heuristics(state), _decide_steps(compiled, state, subjects, artifact)
    if compiled.heuristic != MODEL_PREDICTIVE:  # no other rule chooses for one iteration alone
        answers = steps.decided.verdict == Verdict.OUTSIDE_EXPERIENCE if artifact else np.ones(len(rules), np.bool_)
        passing = ~answers | (np.array(rules) == MODEL_PREDICTIVE)
        steps = steps._replace(then=np.where(passing, steps.then, -1))
    policies = [artifact.policy.name] * len(rules) if artifact else rules
    if failure:
        prefaces = [f"{failure}; {name} answers" for name in rules]
        responder = _Responder("fallback", "fallback", policies, rules, prefaces)
    else:
        responder = _Responder(compiled.source, compiled.code, policies, rules, list(map(compiled.preface, rules)))
    return _render(compiled, state, steps, subjects, now, responder)


def _decide_steps(compiled: Compiled, state: State, subjects: Sequence[Subject], artifact: Artifact | None) -> Steps:
    memories = [subject.memories for subject in subjects]
    memory = None if artifact is None else recalled(memories, compiled.snapshot.agent_version)
    seen = view(compiled.projector, state, compiled.preferences(state))
    situation = Situation(compiled.projector, state, seen, memory)
    decided = guard.decide(situation, artifact, compiled.chosen)
    levels = step(compiled.layout, state.levels, decided.action)
    wanted = [subject.shadow for subject in subjects]
    shadows: list[Consulted | None] = [None] * len(wanted)
    if any(wanted):
        shadows = consulted(compiled, situation, decided.action, wanted, memories)
    return Steps(levels, decided, guard.hysteresis(artifact), shadows, continuation(situation))


def row(state: State, index: int) -> State:
    """One run of a batch, as a batch of one."""
    parts: list[Any] = [field[index : index + 1] for field in state]
    return State(*parts)


class _Responder(NamedTuple):
    """Who answers for B runs.

    Attributes:
        source: of the decisions.
        code: of the reason without an agent; empty with one.
        policies: what answers, [B].
        rules: the heuristics that answer where no agent does, [B].
        notices: the reason without an agent, in words, [B]; empty with one.
    """

    source: str
    code: str
    policies: list[str]
    rules: list[str]
    notices: list[str]


def _render(
    compiled: Compiled, state: State, steps: Steps, subjects: Sequence[Subject], now: datetime, responder: _Responder
) -> list[Answer]:
    hold, after = compiled.layout.index(state.levels), compiled.layout.index(steps.levels)
    pause = compiled.pause(steps.levels - state.levels, state.iteration > 0)
    seen = forecast(compiled.projector, state, hold, after, pause, steps.then)
    contexts = decision_contexts(compiled, state, seen, hold, after, steps.then)
    sources, why, notices = _reasons(compiled, state, steps, contexts, subjects, responder)
    snapshot, over = compiled.snapshot, (state.iteration >= compiled.layout.iterations).tolist()
    decisions = map(
        EncodedDecision,
        [subject.run for subject in subjects],
        repeat(snapshot.name),
        repeat("iterative"),
        [subject.reported for subject in subjects],
        state.iteration.tolist(),
        [context.decided.encoded for context in contexts],
        map(compiled.delta, hold.tolist(), after.tolist()),
        (hold == after).tolist(),
        sources,
        repeat(snapshot.agent_version),
        responder.policies,
        why,
        _unless(over, _predictions(compiled, seen)),
        _unless(over, _chances(compiled, seen)),
        [0 if is_over else 1 for is_over in over],
        repeat(timestamp(now)),
        [None if shadow is None else shadow.encoded for shadow in steps.shadows],
    )
    memories, at_risk = _memories(compiled, steps, subjects), risks(compiled.layout, state, seen)
    return list(map(Answer, map(msgspec.json.encode, decisions), notices, memories, at_risk))


def _unless(over: Sequence[bool], told: list[dict[str, T]]) -> list[dict[str, T]]:
    """What is told of each run's next iteration: nothing where its last one is reported."""
    return [{} if is_over else one for is_over, one in zip(over, told, strict=True)] if any(over) else told


def _memories(compiled: Compiled, steps: Steps, subjects: Sequence[Subject]) -> Sequence[Memories]:
    """What champion and shadow remember of each run from now on; who failed at this report, what it did before."""
    own, champion = steps.decided.memory, compiled.snapshot.agent_version
    if own is None and not any(subject.memories for subject in subjects) and not any(steps.shadows):
        return [NOTHING] * len(subjects)
    out = []
    for i, (subject, shadow) in enumerate(zip(subjects, steps.shadows, strict=True)):
        found = kept(subject.memories, (champion, None if subject.shadow is None else subject.shadow.version))
        if shadow is not None and shadow.memory is not None:
            found[shadow.encoded.agent] = shadow.memory
        if own is not None and champion is not None:
            found[champion] = own[i].copy()
        out.append(found)
    return out


def _reasons(
    compiled: Compiled,
    state: State,
    steps: Steps,
    contexts: Sequence[DecisionContext],
    subjects: Sequence[Subject],
    responder: _Responder,
) -> tuple[list[str], list[EncodedReason], list[frozenset[int]]]:
    """Of each decision: who answers (the guard if it spoke), the reason, and codes of what it says beside that."""
    ways, sources, given, codes = steps.decided.outside, list[str](), list[EncodedReason](), list[frozenset[int]]()
    outside = list(zip(*(runs.tolist() for runs in ways.values()), strict=True))
    rows = zip(steps.decided.verdict.tolist(), contexts, subjects, strict=True)
    for i, (verdict, context, subject) in enumerate(rows):
        source, notice = responder.source, ""
        if verdict == Verdict.FINISHED:
            own = reasons.complete(compiled.layout, state.elapsed[i], state.targets[i], float(state.cost[i]))
            code = own.code
        else:
            own = reasons.explain(compiled.words, context)
            code, notice = responder.code or own.code, responder.notices[i]
        if verdict == Verdict.WITHIN_NOISE:
            own, source, notice = _within_noise(compiled, state, steps, i, own), "guard", ""
            code = own.code
        elif verdict == Verdict.OUTSIDE_EXPERIENCE:
            source, code = "guard", "outside_experience"
            notice = reasons.outside_experience(tuple(compress(ways, outside[i])), responder.rules[i])
        text, known = noted(own.text, notice, context.decided.beyond, subject.notices, responder.notices[i])
        sources.append(source)
        given.append(EncodedReason(code, text))
        codes.append(known)
    return sources, given, codes


def _within_noise(compiled: Compiled, state: State, steps: Steps, i: int, own: Reason) -> Reason:
    """The reason of run ``i``, with what its policy had chosen, and the gain that it had expected, if it had."""
    chosen, values = steps.decided.chosen[i : i + 1], steps.decided.values
    intended = compiled.layout.index(step(compiled.layout, state.levels[i : i + 1], chosen))
    taken, held = (np.nan, np.nan) if values is None else values[i, [chosen[0], compiled.layout.noop]].tolist()
    gain = taken - held if math.isfinite(taken) and math.isfinite(held) else math.nan
    return reasons.within_noise(own, compiled.allocation_text(int(intended[0])).words, gain, steps.required)


def decision_contexts(
    compiled: Compiled, state: State, seen: Forecast, hold: Levels, after: Levels, then: Levels | None = None
) -> list[DecisionContext]:
    """Each decision in plain numbers, told by the metric that is furthest below the probability asked for, else by the
    one that is nearest to missing its target, or furthest beyond.
    """
    sought, (batch, metrics) = asked(state), state.targets.shape
    sure = not sought.any()
    worst = (seen.excess[0] if sure else _told_by(state, seen)).argmax(axis=1)
    at = np.arange(batch) * metrics + worst
    pairs = [pair.reshape(2, -1).take(at, axis=1) for pair in (seen.projected, seen.excess, seen.chance)]
    columns = (
        np.where(pairs[1][0] == -np.inf, -1, worst).tolist(),
        state.targets.take(at).tolist(),
        state.probabilities.take(at).tolist(),
        *(pair.T.tolist() for pair in pairs),
        seen.rest.T.tolist(),
        seen.cost.T.tolist(),
        (hold != after).tolist(),
        map(compiled.allocation_text, hold.tolist()),
        map(compiled.allocation_text, after.tolist()),
        [True] * len(hold) if sure else _attainable(compiled, state, seen, sought),
        repeat(None)
        if then is None
        else [compiled.allocation_text(row) if row >= 0 else None for row in then.tolist()],
    )
    return list(map(DecisionContext, *columns))


def _told_by(state: State, seen: Forecast) -> NDArray[np.floating]:
    """How much each metric matters where probabilities are asked for, [B, M]."""
    unsure = state.probabilities - seen.chance[0]
    return np.where(unsure > 0, 1e6 + unsure, seen.excess[0])


def _attainable(compiled: Compiled, state: State, seen: Forecast, sought: NDArray[np.bool_]) -> list[bool]:
    """Whether any allocation meets all targets as surely as is asked for, [B]."""
    short = ((state.probabilities > seen.chance[1]) & sought).any(axis=1)
    for i in np.flatnonzero(short):
        one, projector = row(state, int(i)), compiled.projector
        short[i] = not assured(projector, one, everywhere(projector, one)).any()
    attainable: list[bool] = (~short).tolist()
    return attainable


def _predictions(compiled: Compiled, seen: Forecast) -> list[dict[str, EncodedInterval]]:
    """What each metric is expected to be in the next iteration, of each run."""
    level = repeat(compiled.projector.table.level)
    columns = zip(seen.mean.T.tolist(), seen.low.T.tolist(), seen.high.T.tolist(), strict=True)
    intervals = [map(EncodedInterval, *column, level) for column in columns]
    return [dict(zip(compiled.layout.metrics, row, strict=True)) for row in zip(*intervals, strict=True)]


def _chances(compiled: Compiled, seen: Forecast) -> list[dict[str, float]]:
    """How likely each target is to be met at the decided allocation, where that can be told."""
    names, rows = compiled.layout.metrics, seen.chance[1].round(4)
    if not np.isnan(rows).any():
        return [dict(zip(names, row, strict=True)) for row in rows.tolist()]
    told = (zip(names, row, strict=True) for row in rows.tolist())
    return [{name: chance for name, chance in row if not math.isnan(chance)} for row in told]


def begin_with(compiled: Compiled, state: State, run: str | None, now: datetime) -> tuple[Answer, Levels]:
    """The first answer to one run that has reported nothing (B = 1), and the levels [R] that it allocates."""
    projector, layout = compiled.projector, compiled.layout
    levels = first_allocation(projector, state)
    hold, after = layout.index(layout.start_levels[None]), layout.index(levels)
    seen = forecast(projector, state, hold, after, np.zeros(1))
    context = decision_contexts(compiled, state, seen, hold, after)[0]
    informed = projector.table.informed
    first = (
        reasons.first(compiled.words, context)
        if informed
        else reasons.first_without_model(context, compiled.snapshot.problem)
    )
    text, notices = noted(first.text, "", context.decided.beyond if informed else "", NONE, "")
    predicted = _predictions(compiled, seen)[0] if informed else {}
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
        reason=EncodedReason(first.code, text),
        predicted=predicted,
        chances=_chances(compiled, seen)[0],
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    risk, seconds = risks(layout, state, seen)[0], predicted[SECONDS].mean if informed else None
    return Answer(msgspec.json.encode(decision), notices, risk=risk, expected_seconds=seconds), levels[0]


def _held(compiled: Compiled, state: State, subject: Subject, now: datetime, text: str) -> Answer:
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
        chances={},
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return Answer(msgspec.json.encode(decision), NONE, subject.memories, risk=None)
