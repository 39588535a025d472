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
from app.kinds.iterative.chance import asked, assured
from app.kinds.iterative.decisions import reasons
from app.kinds.iterative.decisions.compiled import Compiled
from app.kinds.iterative.decisions.forecast import Forecast, forecast
from app.kinds.iterative.decisions.notices import NONE, codes
from app.kinds.iterative.decisions.reasons import DecisionContext, Reason
from app.kinds.iterative.decisions.schemas import EncodedDecision, EncodedInterval, EncodedReason, EncodedShadow
from app.kinds.iterative.decisions.shadow import Consulted, consulted
from app.kinds.iterative.heuristics import first_allocation
from app.kinds.iterative.observation import everywhere, view
from app.kinds.iterative.policies import guard
from app.kinds.iterative.policies.guard import Verdict
from app.kinds.iterative.state import State
from app.kinds.iterative.step import step
from app.policies.artifact import Artifact
from app.policies.memory import NOTHING, Memories, Memory, kept, recalled

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
        memory: what the policy remembers of each run from now on, [B, H]; None where it remembers nothing.
        gain: by which the chosen step's return exceeds that of staying, as the policy values them, [B]; not a number
            where it doesn't; empty where the guard finds no step within the noise.
        required: what a change must gain.
    """

    levels: Levels
    chosen: Levels
    verdict: list[int]
    outside: dict[str, NDArray[np.bool_]]
    shadows: list[Consulted | None]
    memory: Memory | None
    gain: list[float]
    required: float


class Subject(NamedTuple):
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


class Answer(NamedTuple):
    """An encoded decision.

    Attributes:
        notices: codes of what it has to say beside its reason, be it said or not.
        memories: what agents remember of the run from now on.
    """

    decision: bytes
    notices: frozenset[int]
    memories: Memories = NOTHING


def decide(compiled: Compiled, state: State, subjects: Sequence[Subject], now: datetime) -> list[Answer]:
    """The answer for each run of ``state`` (leading dimension B)."""
    try:
        return _answered(compiled, state, subjects, now, compiled.artifact, "")
    except Exception as error:
        logger.exception("workload %s: deciding for %d runs failed", compiled.snapshot.name, len(subjects))
        if len(subjects) > 1:
            return [decide(compiled, row(state, i), [subject], now)[0] for i, subject in enumerate(subjects)]
        return [_fallback(compiled, state, subjects[0], now, f"{type(error).__name__}: {error}")]


def _fallback(compiled: Compiled, state: State, subject: Subject, now: datetime, failure: str) -> Answer:
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
) -> list[Answer]:
    steps = _steps(compiled, state, subjects, artifact)
    if failure:
        return _render(
            compiled, state, steps, subjects, now, _Responder("fallback", compiled.heuristic, "fallback", failure)
        )
    name = artifact.policy.name if artifact else compiled.heuristic
    return _render(compiled, state, steps, subjects, now, _Responder(compiled.source, name, *compiled.preface))


def _steps(compiled: Compiled, state: State, subjects: Sequence[Subject], artifact: Artifact | None) -> Steps:
    memories = [subject.memories for subject in subjects]
    memory = None if artifact is None else recalled(memories, compiled.snapshot.agent_version)
    situation = Situation(compiled.projector, state, view(compiled.projector, state), memory)
    decided = guard.decide(situation, artifact)
    levels = step(compiled.layout, state.levels, decided.action)
    same = decided.chosen is decided.action
    chosen = levels if same else step(compiled.layout, state.levels, decided.chosen)
    wanted = [subject.shadow for subject in subjects]
    shadows = consulted(compiled, situation, decided.action, wanted, memories) if any(wanted) else []
    required = guard.hysteresis(artifact)
    verdict = decided.verdict.tolist()
    gain = _gain(compiled, decided) if Verdict.WITHIN_NOISE in verdict else []
    return Steps(levels, chosen, verdict, decided.outside, shadows, decided.memory, gain, required)


def _gain(compiled: Compiled, decided: guard.Decided) -> list[float]:
    batch = len(decided.action)
    if decided.values is None:
        return [float("nan")] * batch
    taken, held = decided.values[np.arange(batch), decided.chosen], decided.values[:, compiled.layout.noop]
    known = np.isfinite(taken) & np.isfinite(held)
    gain: list[float] = np.subtract(taken, held, out=np.full(batch, np.nan), where=known).tolist()
    return gain


def row(state: State, index: int) -> State:
    """One run of a batch, as a batch of one."""
    parts: list[Any] = [field[index : index + 1] for field in state]
    return State(*parts)


class _Responder(NamedTuple):
    """Source and policy of decisions, and without an agent the reason: a code and a notice; empty with one."""

    source: str
    policy: str
    code: str
    notice: str


def _render(
    compiled: Compiled, state: State, steps: Steps, subjects: Sequence[Subject], now: datetime, responder: _Responder
) -> list[Answer]:
    hold, after = compiled.layout.index(state.levels), compiled.layout.index(steps.levels)
    pause = compiled.pause(steps.levels - state.levels, state.iteration > 0)
    seen = forecast(compiled.projector, state, hold, after, pause)
    contexts = decision_contexts(compiled, state, seen, hold, after)
    moves, iterations = list(zip(hold.tolist(), after.tolist(), strict=True)), state.iteration.tolist()
    intended = (after if steps.chosen is steps.levels else compiled.layout.index(steps.chosen)).tolist()
    moment = timestamp(now)
    predictions, chances = _predictions(compiled, seen), _chances(compiled, seen)
    out = []
    for i, (subject, context) in enumerate(zip(subjects, contexts, strict=True)):
        said = _reason(compiled, steps, i, context, responder, intended[i])
        reason, notices = said.told(subject.notices, context.decided.beyond, responder.notice)
        done = steps.verdict[i] == Verdict.FINISHED
        decision = EncodedDecision(
            run=subject.run,
            workload=compiled.snapshot.name,
            kind="iterative",
            reported=subject.reported,
            iteration=iterations[i],
            allocation=context.decided.encoded,
            delta=compiled.delta(*moves[i]),
            noop=not context.moved,
            source=said.source,
            agent=compiled.snapshot.agent_version,
            policy=responder.policy,
            reason=EncodedReason(reason.code, reason.text),
            predicted={} if done else predictions[i],
            chances={} if done else chances[i],
            valid_for_iterations=0 if done else 1,
            decided_at=moment,
            shadow=_shadow(steps, i),
        )
        out.append(Answer(msgspec.json.encode(decision), notices, _memories(compiled, steps, i, subject)))
    return out


def _shadow(steps: Steps, i: int) -> EncodedShadow | None:
    said = steps.shadows[i] if steps.shadows else None
    return None if said is None else said.encoded


def _memories(compiled: Compiled, steps: Steps, i: int, subject: Subject) -> Memories:
    """What champion and shadow remember of a run from now on; who failed at this report, what it did before."""
    if steps.memory is None and not steps.shadows and not subject.memories:
        return NOTHING
    champion, shadow = compiled.snapshot.agent_version, subject.shadow
    found = kept(subject.memories, (champion, None if shadow is None else shadow.version))
    said = steps.shadows[i] if steps.shadows else None
    if said is not None and said.memory is not None:
        found[said.encoded.agent] = said.memory
    if champion is not None and steps.memory is not None:
        found[champion] = steps.memory[i]
    return found


class _Said(NamedTuple):
    """Who answers, the reason, and why it is not the agent that does."""

    source: str
    reason: Reason
    notice: str = ""

    def told(self, known: frozenset[int], beyond: str, lasting: str) -> tuple[Reason, frozenset[int]]:
        """The reason with those notices that aren't ``known``, and the codes of all.

        What is ``lasting`` stays known while the guard speaks: it is as true as before.
        """
        if not (self.notice or beyond or known):
            return self.reason, NONE
        present = codes(self.notice, beyond) | (known & codes(lasting))
        if present <= known:
            return self.reason, present
        before = "" if codes(self.notice) <= known else f"{self.notice}: "
        after = "" if codes(beyond) <= known else f"; {beyond}"
        return Reason(self.reason.code, f"{before}{self.reason.text}{after}"), present


def _reason(
    compiled: Compiled, steps: Steps, i: int, context: DecisionContext, responder: _Responder, intended: int
) -> _Said:
    """The reason: of the guard if it spoke, else of the policy; ``intended`` is the row of its own choice."""
    verdict = steps.verdict[i]
    if verdict == Verdict.FINISHED:
        return _Said(responder.source, reasons.complete(compiled.layout))
    own = reasons.explain(compiled.layout, context)
    if verdict == Verdict.WITHIN_NOISE:
        words = compiled.allocation_text(intended).words
        return _Said("guard", reasons.within_noise(own, words, steps.gain[i], steps.required))
    if verdict == Verdict.OUTSIDE_EXPERIENCE:
        causes = [cause for cause, runs in steps.outside.items() if runs[i]]
        notice = reasons.outside_experience(causes, compiled.heuristic)
        return _Said("guard", Reason("outside_experience", own.text), notice)
    return _Said(responder.source, Reason(responder.code or own.code, own.text), responder.notice)


def decision_contexts(
    compiled: Compiled, state: State, seen: Forecast, hold: Levels, after: Levels
) -> list[DecisionContext]:
    """Each decision in plain numbers, told by the metric that is furthest below the probability asked for, else by the
    one that is nearest to missing its target, or furthest beyond.
    """
    rows, sought = np.arange(len(hold)), asked(state)
    sure = not sought.any()
    worst = (seen.excess[0] if sure else _told_by(state, seen)).argmax(axis=1)
    untargeted = np.isneginf(seen.excess[0][rows, worst])
    columns = (
        np.where(untargeted, -1, worst).tolist(),
        state.targets[rows, worst].tolist(),
        state.probabilities[rows, worst].tolist(),
        *(pair[:, rows, worst].T.tolist() for pair in (seen.projected, seen.excess, seen.chance)),
        seen.rest.T.tolist(),
        seen.cost.T.tolist(),
        (hold != after).tolist(),
        map(compiled.allocation_text, hold.tolist()),
        map(compiled.allocation_text, after.tolist()),
        [True] * len(hold) if sure else _attainable(compiled, state, seen, sought),
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
    names, level = compiled.layout.metrics, compiled.projector.table.level
    rows = np.array([seen.mean, seen.low, seen.high]).transpose(1, 2, 0).tolist()
    return [
        {
            name: EncodedInterval(values[0], values[1], values[2], level)
            for name, values in zip(names, metrics, strict=True)
        }
        for metrics in rows
    ]


def _chances(compiled: Compiled, seen: Forecast) -> list[dict[str, float]]:
    """How likely each target is to be met at the decided allocation, where that can be told."""
    names = compiled.layout.metrics
    rows = seen.chance[1].round(4).tolist()
    return [{name: chance for name, chance in zip(names, row, strict=True) if chance == chance} for row in rows]


def begin_with(compiled: Compiled, state: State, run: str | None, now: datetime) -> tuple[Answer, Levels]:
    """The first answer to one run that has reported nothing (B = 1), and the levels [R] that it allocates."""
    projector, layout = compiled.projector, compiled.layout
    levels = first_allocation(projector, state)
    hold, after = layout.index(layout.start_levels[None]), layout.index(levels)
    seen = forecast(projector, state, hold, after, np.zeros(1))
    context = decision_contexts(compiled, state, seen, hold, after)[0]
    informed = projector.table.informed
    first = (
        reasons.first(layout, context) if informed else reasons.first_without_model(context, compiled.snapshot.problem)
    )
    reason, notices = _Said("heuristic", first).told(frozenset(), context.decided.beyond if informed else "", "")
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
        chances=_chances(compiled, seen)[0],
        valid_for_iterations=1,
        decided_at=timestamp(now),
    )
    return Answer(msgspec.json.encode(decision), notices), levels[0]


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
    return Answer(msgspec.json.encode(decision), frozenset(), subject.memories)
