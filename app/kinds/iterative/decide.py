"""Decisions for the next iteration of a batch of runs.

NumPy costs about the same for one run as for sixty, so all numeric steps are done once per batch: observation, choice
(with the guard), forecast, texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import compress, repeat
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.caps import Cap, Spending, judge
from app.kinds.contract.policy import Situation
from app.kinds.engine import Choices, DecidedBy, KindDecision
from app.kinds.iterative import policies as guard
from app.kinds.iterative import reasons
from app.kinds.iterative.chance import meets_targets
from app.kinds.iterative.compiled import NONE, Compiled, add_notices
from app.kinds.iterative.contingencies import are_offered, offers
from app.kinds.iterative.heuristics import MODEL_PREDICTIVE, continuation, first_allocation
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import everywhere, view
from app.kinds.iterative.policies import GuardedChoice, Verdict
from app.kinds.iterative.prediction import risks
from app.kinds.iterative.reasons import AllocationText, DecisionContext, Forecast, Reason, forecast
from app.kinds.iterative.requests import Request, awaited, excluded, outcome
from app.kinds.iterative.spec import SECONDS
from app.kinds.iterative.state import RunState, State, has_probability, pack
from app.policies.artifact import Artifact, Memory

Levels = NDArray[np.integer]
HELD = ("hold", "static_best")  # rules that never change the allocation within a run
T = TypeVar("T")
Interval = dict[str, float]


class Batch(NamedTuple):
    """B runs after their reports.

    Attributes:
        situation: input of policies for the B runs.
        notices: codes of the notices in each run's last decision, [B].
        upcoming: F features of U announced future iterations, [U, F] per run; U differs between runs.
        changes: bits of each run's last reports, set where the allocation changed, the latest lowest, [B].
        live: whether they are runs; False: states from queries, whose decisions have no contingencies.
        caps: limits of each run, [B]; empty: no run has any.
        requests: requests of each run that were not granted, and the state that its report gave to one (empty: to
            none), [B]; empty: no run has any.
    """

    situation: Situation
    notices: Sequence[frozenset[int]]
    upcoming: Sequence[NDArray[np.float64]]
    changes: Sequence[int]
    live: bool = True
    caps: Sequence[Sequence[Cap]] = ()
    requests: Sequence[tuple[Sequence[Request], str]] = ()


class PolicyChoice(NamedTuple):
    """Actions after the guard, whose checks may replace a policy's choice (``decided``), and the agent whose policy
    chose; None: the heuristic chose."""

    decided: GuardedChoice
    agent: Artifact | None


class Steps(NamedTuple):
    """Steps of B runs with R resources after the guard, whose checks may replace a policy's choice.

    Attributes:
        levels: allocation to take, in grid steps above the minimum, [B, R].
        decided: the guard's result.
        required: least gain in expected return for which the guard accepts a change, [B].
        then: row of the allocation grid after the next iteration, [B]; −1: ``levels`` are held.
    """

    levels: Levels
    decided: GuardedChoice
    required: NDArray[np.floating]
    then: NDArray[np.integer]


def make_batch(
    compiled: Compiled,
    state: State,
    notices: Sequence[frozenset[int]],
    upcoming: Sequence[NDArray[np.float64]],
    changes: Sequence[int] = (),
    *,
    live: bool = True,
    caps: Sequence[Sequence[Cap]] = (),
    requests: Sequence[tuple[Sequence[Request], str]] = (),
) -> Batch:
    """Return the B runs of ``state`` as input of ``choose``; allocations known to be refused are illegal. ``notices``
    [B]: codes of texts in the last decisions; ``upcoming``: announced features, [U, F] per run; ``changes`` [B]: bits
    of recent changes (empty: none); ``live``: False for queries; ``caps`` and open ``requests`` by run."""
    seen = view(compiled.projector, state, compiled.preferences(state))
    requests = requests if any(some or reached for some, reached in requests) else ()
    for i, (some, _) in enumerate(requests):
        if some:
            after = state.levels[i] + compiled.layout.deltas
            refused = excluded(some, int(state.iteration[i]), after)
            seen.mask[i, refused], seen.outlook[i, refused] = False, -np.inf
    situation = Situation(compiled.projector, state, seen)
    return Batch(situation, notices, upcoming, changes or [0] * len(notices), live, caps if any(caps) else (), requests)


def choose(compiled: Compiled, batch: Batch, agent: Artifact | None, memory: Memory | None) -> Choices:
    """Choose an action for each of B runs by the agent's policy, or the heuristic if None, and apply the guard, whose
    checks may replace it.

    ``memory`` [B, H] holds a recurrent policy's hidden states; None: all zeros, or none."""
    situation = batch.situation if memory is None else batch.situation._replace(memory=memory)
    decided = guard.decide(situation, agent, compiled.chosen)
    if batch.caps:
        after = compiled.layout.index(step(compiled.layout, situation.state.levels, decided.action))
        rules = compiled.heuristics(situation.state)
        then = _continuation(compiled, situation, PolicyChoice(decided, agent), rules)
        planned = np.where(then >= 0, then, after)
        decided = guard.within_caps(situation, decided, planned, batch.caps)
    return Choices(decided.action.tolist(), PolicyChoice(decided, agent), decided.memory)


def compare(compiled: Compiled, batch: Batch, row: int, done: int, other: Choices) -> dict[str, Any]:
    """Return a shadow's step for run ``row`` after the guard's checks: its ``allocation``, whether its action
    ``agrees`` with ``done``, and its ``gain`` in expected return over ``done``."""
    layout, (_, state, seen, _) = compiled.layout, batch.situation
    action = other.each[row]
    levels = step(layout, state.levels[row : row + 1], np.array([action]))
    outlook = seen.outlook[row]
    return {
        "allocation": compiled.allocation_text(int(layout.index(levels)[0])).encoded,
        "agrees": action == done,
        "gain": float(outlook[action] - outlook[done]),
    }


def write(compiled: Compiled, batch: Batch, choices: Choices, decided_by: DecidedBy) -> list[KindDecision]:
    """Return the decisions for the chosen actions, one per run of the batch; ``decided_by`` is the deciding policy."""
    state: State = batch.situation.state
    chosen: PolicyChoice = choices.detail
    decided, agent = chosen
    rules = compiled.heuristics(state)
    then = _continuation(compiled, batch.situation, chosen, rules)
    levels = step(compiled.layout, state.levels, decided.action)
    steps = Steps(levels, decided, guard.hysteresis(batch.situation, agent), then)
    policies = [agent.policy.name] * len(rules) if agent else rules
    responder = _Responder(
        decided_by.source, decided_by.code, policies, rules, [compiled.preface(decided_by, one) for one in rules]
    )
    return _render(compiled, batch, steps, responder)


def _continuation(
    compiled: Compiled, situation: Situation, chosen: PolicyChoice, rules: Sequence[str]
) -> NDArray[np.integer]:
    """Return the row of the allocation grid planned for after the next iteration of each of B runs, [B]; −1: the
    decided allocation stays. ``rules`` [B]: names of the heuristics used without an agent."""
    then, (decided, agent) = continuation(situation), chosen
    if compiled.heuristic != MODEL_PREDICTIVE:  # no other rule chooses for one iteration alone
        answers = decided.verdict == Verdict.OUTSIDE_EXPERIENCE if agent else np.ones(len(rules), np.bool_)
        then = np.where(~answers | (np.array(rules) == MODEL_PREDICTIVE), then, -1)
    for i, goal in decided.goals.items():
        then[i] = goal
    return then


def row(state: State, index: int) -> State:
    """Return run ``index`` of a batch as a batch of one; an index beyond the last gives an empty batch."""
    parts: list[Any] = [field[index : index + 1] for field in state]
    return State(*parts)


class _Responder(NamedTuple):
    """The deciding policy of B runs.

    Attributes:
        source: kind of policy that decides: "agent", "heuristic" or "fallback".
        code: code of the reason if no agent decides; empty if one does.
        policies: names of the deciding policies, [B].
        rules: names of the heuristics used without an agent, [B].
        notices: text on why no agent decides, [B]; empty if one does.
    """

    source: str
    code: str
    policies: list[str]
    rules: list[str]
    notices: list[str]


def _render(compiled: Compiled, batch: Batch, steps: Steps, responder: _Responder) -> list[KindDecision]:
    state = batch.situation.state
    hold, after = compiled.layout.index(state.levels), compiled.layout.index(steps.levels)
    # What is awaited is asked for again; what is projected, charged and explained is what is there meanwhile
    taken = steps.levels
    if batch.requests:
        requests = [awaited(some) for some, _ in batch.requests]
        waits = [one is not None and one.levels == tuple(to) for one, to in zip(requests, taken.tolist(), strict=True)]
        taken = np.where(np.array(waits)[:, None], state.levels, taken)
        steps = steps._replace(then=np.where(waits, -1, steps.then))
    planned = compiled.layout.index(taken)
    pause = compiled.pause(taken - state.levels, state.iteration > 0)
    seen = forecast(compiled.projector, state, hold, planned, pause, steps.then)
    contexts = decision_contexts(compiled, state, seen, hold, planned, steps.then)
    sources, why, notices = _reasons(compiled, state, steps, contexts, batch, responder)
    over = (state.iteration >= compiled.layout.iterations).tolist()
    offered = [list[dict[str, Any]]()] * len(after)
    if batch.live and are_offered(compiled.projector):
        offered = [
            [] if rule in HELD else _contingencies(compiled, row(state, i), steps.levels[i], float(pause[i]))
            for i, rule in enumerate(responder.rules)
        ]
    spendings = _spendings(compiled, state, seen, over)
    predictions, chances = _unless(over, _predictions(compiled, seen)), _unless(over, _chances(compiled, seen))
    rows, iterations, at_risk = pack(state), state.iteration.tolist(), risks(compiled.layout, state, seen)
    refused = [some for some, _ in batch.requests] or [()] * len(after)
    made = [
        KindDecision(
            {
                "allocation": compiled.allocation_text(to).encoded,
                "delta": compiled.delta(held, to),
                "predicted": predictions[i],
                "chances": chances[i],
                "contingencies": offered[i],
            },
            why[i],
            noop=held == to,
            state=RunState(rows[i], batch.upcoming[i], notices[i], compiled.belief, batch.changes[i], refused[i]),
            iteration=iterations[i],
            source=sources[i],
            policy=responder.policies[i],
            valid=0 if over[i] else 1,
            risk=at_risk[i],
            spending=spendings[i],
        )
        for i, (held, to) in enumerate(zip(hold.tolist(), after.tolist(), strict=True))
    ]
    if batch.requests:
        each = zip(made, batch.requests, steps.levels, hold.tolist(), strict=True)
        made = [_with_requests(compiled, *one) for one in each]
    if batch.caps:
        return [under_caps(compiled, *each) for each in zip(made, batch.caps, hold.tolist(), strict=True)]
    return made


def _spendings(compiled: Compiled, state: State, seen: Forecast, over: Sequence[bool]) -> list[Spending]:
    """Return each of B runs' cost (prices' currency) and seconds so far, in the next iteration, and in the rest, at the
    decided allocation; ``over``: whether it has ended."""
    at = compiled.layout.seconds
    ahead = seen.mean[:, at].tolist(), seen.rate.tolist(), seen.cost[1].tolist(), seen.rest[1].tolist()
    columns = zip(state.cost.tolist(), state.elapsed[:, at].tolist(), *ahead, over, strict=True)
    return [
        Spending(cost, took, following * rate, following, rest_cost, rest)
        if not is_over and following < math.inf  # a forecast that is no number says nothing
        else Spending(cost, took, 0.0, 0.0, 0.0 if is_over else math.nan, 0.0 if is_over else math.nan)
        for cost, took, following, rate, rest_cost, rest, is_over in columns
    ]


def under_caps(compiled: Compiled, made: KindDecision, caps: Sequence[Cap], held: int) -> KindDecision:
    """Return a run's decision with the use of its ``caps``; if one is reached, the decision stops the run and keeps row
    ``held`` of the allocation grid."""
    if not caps or made.spending is None:
        return made
    found, text = judge(caps, made.spending, over=made.valid == 0), made.reason["text"]
    if found.stop:
        own = {"allocation": compiled.allocation_text(held).encoded, "delta": compiled.delta(held, held)}
        return msgspec.structs.replace(
            made,
            own={**made.own, **own, "contingencies": []},
            noop=True,
            source="guard",
            reason={"code": "cap_reached", "text": f"stop: {found.stop}"},
            risk=found.stop,
            caps=found.entries,
            stop=found.stop,
        )
    reason = {**made.reason, "text": "; ".join(filter(None, (text, found.notice)))}
    risk = "; ".join(filter(None, (made.risk, found.risk))) or made.risk
    # What speeds up a late iteration costs more than the step that the caps have forced
    kept: dict[str, Any] = {**made.own, **({"contingencies": []} if made.reason["code"] == "cap" else {})}
    return msgspec.structs.replace(made, own=kept, reason=reason, risk=risk, caps=found.entries)


def _with_requests(
    compiled: Compiled, made: KindDecision, given: tuple[Sequence[Request], str], decided: Levels, held: int
) -> KindDecision:
    """Return decision ``made``, with reason, risk and fields that say which requests for allocations weren't granted.

    ``given``: the run's requests that weren't granted, and the state that the last report gave to a request ("granted",
    "requested", "refused", "timed_out"; empty: to none); ``decided`` [R]: level decided per resource; ``held``: row of
    the allocation in effect in the allocation grid. After the last iteration, only that state is added."""
    (requests, reached), layout, iteration = given, compiled.layout, made.iteration or 0

    def text(levels: Sequence[int]) -> AllocationText:
        return compiled.allocation_text(int(layout.index(np.array(levels))))

    found = outcome(requests, decided, compiled.allocation_text(held), text, iteration, layout.iterations)
    if made.valid == 0:
        return msgspec.structs.replace(made, requested=reached)
    late = f"granted by now: {compiled.allocation_text(held).words}" if reached == "granted" else ""
    reason = {**made.reason, "text": "; ".join(filter(None, (made.reason["text"], late, found.text)))}
    if found.granted is None:
        return msgspec.structs.replace(made, reason=reason, requested=reached)
    risk = f"{made.risk}; {found.text}" if made.risk else made.risk
    own = {**made.own, "contingencies": []}  # what speeds up a late iteration asks for more, which isn't to be had
    return msgspec.structs.replace(made, own=own, reason=reason, risk=risk, granted=found.granted, requested=reached)


def _contingencies(compiled: Compiled, state: State, levels: Levels, pause: float) -> list[dict[str, Any]]:
    """Return the contingencies of one run's next iteration at ``levels`` [R], after a change of ``pause`` seconds."""
    found = []
    for one in offers(compiled.projector, state, levels, pause):
        allocation = compiled.allocation_text(int(compiled.layout.index(one.levels)))
        reason = {"code": "takes_long", "text": one.text(allocation.words)}
        found.append({"after_seconds": round(one.after, 3), "allocation": allocation.encoded, "reason": reason})
    return found


def _unless(over: Sequence[bool], told: list[dict[str, T]]) -> list[dict[str, T]]:
    return [{} if is_over else one for is_over, one in zip(over, told, strict=True)] if any(over) else told


def _reasons(
    compiled: Compiled,
    state: State,
    steps: Steps,
    contexts: Sequence[DecisionContext],
    batch: Batch,
    responder: _Responder,
) -> tuple[list[str], list[dict[str, str]], list[frozenset[int]]]:
    """Return source, reason and codes of notices of each decision; the guard is the source if it intervened."""
    ways, sources, given, codes = steps.decided.outside, list[str](), list[dict[str, str]](), list[frozenset[int]]()
    outside = list(zip(*(runs.tolist() for runs in ways.values()), strict=True))
    rows = zip(steps.decided.verdict.tolist(), contexts, batch.notices, batch.changes, strict=True)
    for i, (verdict, context, before, moves) in enumerate(rows):
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
        elif verdict == Verdict.BEYOND_CAP:
            wanted = step(compiled.layout, state.levels[i : i + 1], steps.decided.chosen[i : i + 1])
            intended = compiled.allocation_text(int(compiled.layout.index(wanted)[0])).words
            own, source, code = reasons.beyond_cap(own, intended), "guard", "cap"
        text, present = add_notices(own.text, notice, context.decided.beyond, before, responder.notices[i])
        if often := reasons.flapping(moves):
            text = f"{text}; {often}"
        sources.append(source)
        given.append({"code": code, "text": text})
        codes.append(present)
    return sources, given, codes


def _within_noise(compiled: Compiled, state: State, steps: Steps, i: int, own: Reason) -> Reason:
    """Return the reason that run ``i``'s change was suppressed, with the policy's choice and its gain, if known."""
    chosen, values = steps.decided.chosen[i : i + 1], steps.decided.values
    intended = compiled.layout.index(step(compiled.layout, state.levels[i : i + 1], chosen))
    taken, held = (np.nan, np.nan) if values is None else values[i, [chosen[0], compiled.layout.noop]].tolist()
    gain = taken - held if math.isfinite(taken) and math.isfinite(held) else math.nan
    return reasons.within_noise(own, compiled.allocation_text(int(intended[0])).words, gain, float(steps.required[i]))


def decision_contexts(
    compiled: Compiled, state: State, seen: Forecast, hold: Levels, after: Levels, then: Levels | None = None
) -> list[DecisionContext]:
    """Return the numbers of each of B decisions that its reason states, for the run's most critical metric.

    That is the metric furthest below its required probability, else the one closest to missing its target or furthest
    beyond. ``hold`` and ``after`` [B] are rows of the allocation grid before and after the decision, ``then`` [B] that
    after the next iteration (−1, or None: no other)."""
    sought, (batch, metrics) = has_probability(state), state.targets.shape
    sure = not sought.any()
    worst = (seen.excess[0] if sure else _criticality(state, seen)).argmax(axis=1)
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


def _criticality(state: State, seen: Forecast) -> NDArray[np.floating]:
    """Return how critical each metric is at the present allocation, [B, M]: relative miss of its target or, where that
    is less likely to be met than required, 10⁶ plus the missing probability."""
    unsure = state.probabilities - seen.chance[0]
    return np.where(unsure > 0, 1e6 + unsure, seen.excess[0])


def _attainable(compiled: Compiled, state: State, seen: Forecast, sought: NDArray[np.bool_]) -> list[bool]:
    """Return for each of B runs whether an allocation meets all targets with the required probabilities; it is only
    sought where the decided one falls short in a metric of the mask ``sought`` [B, M], and True elsewhere."""
    short = ((state.probabilities > seen.chance[1]) & sought).any(axis=1)
    for i in np.flatnonzero(short):
        one, projector = row(state, int(i)), compiled.projector
        short[i] = not meets_targets(projector, one, everywhere(projector, one)).any()
    attainable: list[bool] = (~short).tolist()
    return attainable


def _predictions(compiled: Compiled, seen: Forecast) -> list[dict[str, Interval]]:
    """Return for each run the predicted mean and interval of each metric in the next iteration, by metric name."""
    level = repeat(compiled.projector.table.level)
    columns = zip(seen.mean.T.tolist(), seen.low.T.tolist(), seen.high.T.tolist(), strict=True)
    intervals = [map(_interval, *column, level) for column in columns]
    return [dict(zip(compiled.layout.metrics, row, strict=True)) for row in zip(*intervals, strict=True)]


def _interval(mean: float, low: float, high: float, level: float) -> Interval:
    return {"mean": mean, "low": low, "high": high, "level": level}


def _chances(compiled: Compiled, seen: Forecast) -> list[dict[str, float]]:
    """Return for each run the probability to meet each target at the decided allocation, by metric, if known."""
    names, rows = compiled.layout.metrics, seen.chance[1].round(4)
    if not np.isnan(rows).any():
        return [dict(zip(names, row, strict=True)) for row in rows.tolist()]
    rows_by_name = (zip(names, row, strict=True) for row in rows.tolist())
    return [{name: chance for name, chance in row if not math.isnan(chance)} for row in rows_by_name]


def begin(compiled: Compiled, state: State, *, live: bool = True, caps: Sequence[Cap] = ()) -> KindDecision:
    """Return the first decision of one run (``state`` with B = 1): the model's best allocation within its ``caps``, or
    the spec's initial one without a model. ``live``: False for a query."""
    projector, layout = compiled.projector, compiled.layout
    levels = first_allocation(projector, state)
    if caps and projector.table.informed:
        within = guard.row_within(projector, state, caps, int(layout.index(levels)[0]))
        levels = projector.grid_levels[[within]].astype(levels.dtype)
    hold, after = layout.index(layout.start_levels[None]), layout.index(levels)
    seen = forecast(projector, state, hold, after, np.zeros(1))
    context = decision_contexts(compiled, state, seen, hold, after)[0]
    informed = projector.table.informed
    if not informed:
        first = reasons.first_without_model(context, compiled.snapshot.problem)
    elif projector.table.prior:
        snapshot = compiled.snapshot
        first = reasons.first_by_prior(compiled.words, context, snapshot.problem, snapshot.similar)
    else:
        first = reasons.first(compiled.words, context)
    text, notices = add_notices(first.text, "", context.decided.beyond if informed else "", NONE, "")
    predicted = _predictions(compiled, seen)[0] if informed else {}
    spending = _spendings(compiled, state, seen, [False])[0] if informed else Spending(0.0, 0.0)
    if projector.table.prior:  # no run is refused, nor another's money reserved, because of a guess
        spending = spending._replace(next_cost=0.0, next_seconds=0.0)
    made = KindDecision(
        {
            "allocation": context.decided.encoded,
            "delta": compiled.delta(int(hold[0]), int(after[0])),
            "predicted": predicted,
            "chances": _chances(compiled, seen)[0],
            "contingencies": _contingencies(compiled, state._replace(levels=levels[:1]), levels[0], 0.0)
            if live and compiled.heuristic not in HELD
            else [],
        },
        {"code": first.code, "text": text},
        noop=not context.moved,
        state=RunState(pack(state._replace(levels=levels[:1]))[0], state.upcoming[0], notices, compiled.belief),
        iteration=int(state.iteration[0]),
        source="heuristic",
        policy="static_best" if informed else "initial",
        risk=risks(layout, state, seen)[0],
        expected_seconds=predicted[SECONDS]["mean"] if informed else None,
        spending=spending,
    )
    return under_caps(compiled, made, caps, int(after[0]))


def hold(
    compiled: Compiled,
    state: State,
    upcoming: NDArray[np.float64],
    changes: int,
    failure: str,
    caps: Sequence[Cap] = (),
    requests: tuple[Sequence[Request], str] = ((), ""),
) -> KindDecision:
    """Return a decision that keeps the allocation of one run (``state`` with B = 1), without model or forecast.

    ``upcoming`` [U, F]: its announced features; ``changes``: bits of recent changes; ``failure``: the beginning of the
    reason's text. The decision names those of its ``caps`` that are reached, and what became of its ``requests``
    (those that weren't granted, and the state that the last report gave to one; empty: to none)."""
    here = int(compiled.layout.index(state.levels)[0])
    own = {"allocation": compiled.allocation_text(here).encoded, "delta": compiled.delta(here, here)}
    made = KindDecision(
        {**own, "predicted": {}, "chances": {}, "contingencies": []},
        {"code": "fallback", "text": f"{failure}; keep {compiled.allocation_text(here).words}"},
        noop=True,
        state=RunState(pack(state)[0], upcoming, NONE, compiled.belief, changes, requests[0]),
        iteration=int(state.iteration[0]),
        valid=0 if state.iteration[0] >= compiled.layout.iterations else 1,
        risk=None,
        spending=Spending(float(state.cost[0]), float(state.elapsed[0, compiled.layout.seconds])),
    )
    made = _with_requests(compiled, made, requests, state.levels[0], here)
    return under_caps(compiled, made, caps, here)
