"""Forecasts of a run at an allocation, and the reason of a decision as text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from app.charts.text import amount_or_duration, duration, money, number
from app.charts.text import probability as likelihood
from app.kinds.iterative.announced import Announced, Remaining, announced_iterations, remaining
from app.kinds.iterative.chance import chances_of
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import SECONDS, Metric
from app.kinds.iterative.state import State, drift_variance, log_factor, member_weights, noise_scale, own_scale

# Reasons with numbers: allocation, projected metric with the probability to meet its target, and remaining cost, of the
# decided allocation if held and of the present one; and the target.
#
# Codes:
#
# ===================  ==================================================================================
# ``initial``          the run's first allocation
# ``deadline_at_risk``  a target of the whole run is projected to be missed, or less likely to be met than required
# ``target_at_risk``   the same of a target of each iteration
# ``out_of_reach``     no allocation meets a target with the required probability: the best trade-off by the weights
# ``margin``           the target is met, but the step makes that surer
# ``slack_to_save_cost``  the target is met with room to spare, which the step turns into money
# ``trade_off``        a miss is accepted, because meeting the target isn't worth its price
# ``phase``            the next iteration gains more, or less, from an allocation than those after it
# ``on_track``         nothing needs to change
# ``cap``              the policy's allocation, held to the end, would pass a cap
# ``cap_reached``      the run is to stop: the next iteration would pass a cap
# ``complete``         every iteration is reported: what the run took against its targets, and its cost
# ``within_noise``, …  a guard replaced the policy's step
# ``no_model``, ``no_agent``  a heuristic decides: there are no samples, or no agent is promoted
# ``fallback``         something failed, and a heuristic decides instead
# ===================  ==================================================================================


Array = NDArray[np.floating]
_BOUNDS = {"at_most": "target", "at_least": "target at least", "track": "set point"}
TOLERANCE = 0.001  # a relative miss below it is none that a person would see


class AllocationText(NamedTuple):
    """An allocation as JSON (``encoded``) and in words, a text on resources ``beyond`` the samples ("": none), and
    whether it is the ``maximum`` of every resource."""

    encoded: msgspec.Raw
    words: str
    beyond: str = ""
    maximum: bool = False


class DecisionContext(msgspec.Struct, frozen=True):
    """Numbers of one decision; pairs are (keep the present allocation, take the decided one), held or followed by
    ``then``.

    Attributes:
        metric: position of the most critical metric; −1: no targets.
        target: that metric's target, in its unit.
        probability: its required probability; NaN: none.
        projected, excess, chance: pairs for that metric: value to compare with the target, in its unit; relative miss,
            negative if met with slack; probability to meet the target, NaN: unknown.
        rest, cost: pairs: seconds of the remaining run, and money for it.
        moved: whether the allocation changes.
        present, decided: the run's present allocation, and the decided one.
        attainable: whether any allocation meets all targets with the required probabilities.
        then: allocation after the next iteration; None: the decided one is held.
    """

    metric: int
    target: float
    probability: float
    projected: Sequence[float]
    excess: Sequence[float]
    chance: Sequence[float]
    rest: Sequence[float]
    cost: Sequence[float]
    moved: bool
    present: AllocationText
    decided: AllocationText
    attainable: bool = True
    then: AllocationText | None = None

    @property
    def passing(self) -> str:
        """The allocation after the next iteration in words; empty if the decided one is held."""
        return "" if self.then is None or self.then.words == self.decided.words else self.then.words

    def missed(self, option: int) -> bool:
        """Return whether the target is projected to be missed, or less likely to be met than required, if the present
        allocation is kept (``option`` 0) or the decided one taken (1)."""
        if math.isnan(self.probability):
            return self.excess[option] > TOLERANCE
        return self.chance[option] < self.probability


class Reason(msgspec.Struct, frozen=True):
    """Reason of a decision: a stable code, and text."""

    code: str
    text: str


class Wording(NamedTuple):
    """Parts of texts about a metric: ``subject`` “finish at” or “latency”, ``bound`` “target”, ``unit`` “ms”, ``when``
    “ in the next iteration” after a probability; and ``risk``, the reason's code if its target is at risk."""

    subject: str
    bound: str
    unit: str
    when: str
    risk: str


def wording(metric: Metric) -> Wording:
    """Return the parts of texts about ``metric``."""
    whole = metric.scope == "run"
    return Wording(
        "finish at" if metric.name == SECONDS and whole else metric.name.replace("_", " "),
        _BOUNDS[metric.goal],
        metric.unit,
        "" if whole else " in the next iteration",
        "deadline_at_risk" if whole else "target_at_risk",
    )


def explain(words: Sequence[Wording], context: DecisionContext) -> Reason:
    """Return the reason of a policy's own step; ``words``: wording of each metric, in order."""
    if context.metric < 0:
        return _reason_without_target(context)
    own = words[context.metric]
    target = f"{_goal(own, context)}{_unmet(own, context)}"
    passing = f", then {context.passing}" if context.passing else ""
    if not context.moved:
        kept = f"keep {context.present.words}{' for the next iteration' if passing else ''}{passing}"
        return Reason(_code(own, context), f"{kept}: {_reached(own, context, 0)}{_cost(context)}; {target}")
    before = f"{context.present.words}: {_value(own, context, 0)}; {target}"
    if passing:
        step = f"{context.decided.words} for the next iteration{passing}"
        return Reason("phase", f"{step}: {_reached(own, context, 1)}{_cost(context)}; {before}")
    text = f"{context.decided.words}: {_reached(own, context, 1)}{_cost(context)}; {before}"
    return Reason(_code(own, context), text)


def _code(own: Wording, context: DecisionContext) -> str:
    if not context.attainable:
        return "out_of_reach"
    if context.missed(0):
        surer = context.chance[1] > context.chance[0] or context.excess[1] < context.excess[0]
        return own.risk if surer or not context.moved else "trade_off"
    if not context.moved:
        return "on_track"
    if context.cost[1] < context.cost[0]:
        return "trade_off" if context.missed(1) else "slack_to_save_cost"
    return "margin"


def _reason_without_target(context: DecisionContext) -> Reason:
    if not context.moved:
        return Reason("on_track", f"keep {context.present.words}{_cost(context)}; no target is set")
    code = "slack_to_save_cost" if context.cost[1] < context.cost[0] else "trade_off"
    return Reason(code, f"{context.decided.words}: {_remaining_time(context)}{_cost(context)}; no target is set")


def _reached(own: Wording, context: DecisionContext, option: int) -> str:
    """Return a text such as “finish at 31 min 52 s (12 %)”: expected value and probability to meet the target at the
    present allocation (``option`` 0), or the decided one (1)."""
    return f"{own.subject} {_value(own, context, option)}"


def _value(own: Wording, context: DecisionContext, option: int) -> str:
    chance = context.chance[option]
    probability = "" if math.isnan(chance) else f" ({likelihood(chance)}{own.when})"
    return f"{amount_or_duration(context.projected[option], own.unit)}{probability}"


def _goal(own: Wording, context: DecisionContext) -> str:
    """Return a text such as “target 30 min at 95 %”, the required probability, if any."""
    required = "" if math.isnan(context.probability) else f" at {number(100 * context.probability, 6)} %"
    return f"{own.bound} {_text(context.target, own.unit)}{required}"


def _unmet(own: Wording, context: DecisionContext) -> str:
    """Return a text if no allocation meets all targets as surely as required, or if the decided one is the maximum and
    misses a deadline, which more resources would meet; else an empty text."""
    missed = context.missed(1)
    if not context.attainable:
        return " can't be met" if missed else "; not all targets can be met"
    limited = missed and context.decided.maximum and own.subject == "finish at" and own.bound == "target"
    return f" not met: {context.decided.words} is the maximum" if limited else ""


_text = lru_cache(maxsize=1024)(amount_or_duration)
"""The function with a cache, as the same targets recur in each report."""


def _cost(context: DecisionContext) -> str:
    """Return a text such as “, remaining cost $4.15 (was $3.60)”; empty without a cost."""
    before, after = context.cost
    if max(before, after) <= 0:
        return ""
    was = money(before)
    shown = money(after) if context.moved else was
    return f", remaining cost {shown}{f' (was {was})' if was != shown else ''}"


def _remaining_time(context: DecisionContext) -> str:
    before, after = context.rest
    return f"remaining time {duration(after)} (was {duration(before)})"


def first(words: Sequence[Wording], context: DecisionContext) -> Reason:
    """Return the reason of a run's first allocation, chosen by the model; ``words``: wording of each metric."""
    start, cost = f"start with {context.decided.words}", f"cost {money(context.cost[1])}" * (context.cost[1] > 0)
    if context.metric < 0:
        return Reason("initial", f"{start}{cost and f': {cost}'}; no target is set")
    own = words[context.metric]
    meets = context.attainable and not math.isnan(context.probability) and not context.missed(1)
    chosen = f"the best trade-off{' that meets the target' if meets else ''}"
    projection = f"{_reached(own, context, 1)}{cost and f', {cost}'}; {_goal(own, context)}{_unmet(own, context)}"
    return Reason("initial", f"{start}, {chosen}: {projection}")


def first_by_prior(words: Sequence[Wording], context: DecisionContext, problem: str, similar: str) -> Reason:
    """Return the reason of a run's first allocation, chosen by the prior. ``words``: wording of each metric;
    ``problem``: why the model can't be used ("": none); ``similar``: text on the prior's data ("": any)."""
    own = first(words, context)
    predicted = similar or "from workloads in general"
    return Reason("no_model", f"{own.text}; {problem or 'no domain model yet'}: predicted {predicted}")


def first_without_model(context: DecisionContext, problem: str = "") -> Reason:
    """Return the reason of a run's first allocation without a usable domain model.

    ``problem`` states why the model can't be used; empty: there is none."""
    why = problem or "no domain model yet"
    return Reason("no_model", f"start with {context.decided.words}, the workload's initial allocation; {why}")


def complete(layout: Layout, totals: Array, targets: Array, cost: float) -> Reason:
    """Return the reason after the last iteration: totals against targets for the whole run, and the cost if above 0.

    Args:
        layout: layout of the workload, with M metrics.
        totals, targets: sums over the run, and targets, in the metrics' units, [M]; NaN: no target.
        cost: cost of the run, in the prices' currency.
    """
    parts = []
    for metric, total, target in zip(layout.spec.metrics, totals.tolist(), targets.tolist(), strict=True):
        if metric.scope != "run" or math.isnan(target):
            continue
        own, subject = wording(metric), "took" if metric.name == SECONDS else metric.name.replace("_", " ")
        verdict = "" if metric.goal == "track" else " (met)" if metric.is_met(total, target) else " (missed)"
        parts.append(
            f"{subject} {amount_or_duration(total, metric.unit)}, {own.bound} {_text(target, metric.unit)}{verdict}"
        )
    if cost > 0:
        parts.append(f"cost {money(cost)}")
    done = f"complete after {layout.iterations:,} iterations"
    return Reason("complete", f"{done}: {'; '.join(parts)}" if parts else done)


def within_noise(own: Reason, intended: str, gain: float, required: float) -> Reason:
    """Return the reason why allocation ``intended`` isn't taken: its ``gain`` in return (NaN: unknown) isn't above
    ``required``. ``own`` is the reason for staying."""
    below = f"gain below threshold (return {number(gain, 2, signed=True)}, more than {number(required, 2)} required)"
    unless = "gain unknown" if math.isnan(gain) else "no gain"
    return Reason("within_noise", f"{own.text}; {intended}: {below if gain > 0 else unless}")


def beyond_cap(own: Reason, intended: str) -> Reason:
    """Return the reason why allocation ``intended``, which a cap forbids, isn't taken; ``own``: that of the step
    taken."""
    return Reason("cap", f"{own.text}; {intended}, held to the end, would pass a cap")


_OUTSIDE = {
    "allocation": "the allocation is outside the range of the samples",
    "features": "the features are outside the range of the samples",
    "run_effect": "the run is further from the model than any sample",
    "targets": "the targets are outside the agent's training range",
    "weights": "the weights are outside the agent's training range",
    "prices": "the prices are outside the agent's training range",
    "probabilities": "agents are not trained for a required probability",
}


@lru_cache(maxsize=1024)
def outside_experience(causes: tuple[str, ...], heuristic: str) -> str:
    """Return a text: ``heuristic`` decides, as ``causes`` are outside the policy's training conditions."""
    return f"{', '.join(_OUTSIDE.get(cause, cause) for cause in causes)}; {heuristic} decides"


WINDOW, FLAPPING = 5, 3
"""Iterations that are looked back on, and the number of changes within them from which a reason says so."""
HISTORY = (1 << WINDOW) - 1


def flapping(changes: int) -> str:
    """Return a text if the latest report is one of several with a changed allocation; else an empty text. ``changes``
    has a bit for each of the last ``WINDOW`` reports, the latest one lowest."""
    count = changes.bit_count()
    return f"changed {count} times in the last {WINDOW} iterations" if changes & 1 and count >= FLAPPING else ""


# Forecast of a decision: metrics of the next iteration with intervals, and the run's end with and without it.


Indices = NDArray[np.integer]
SIGNS = {"at_most": 1.0, "at_least": -1.0, "track": 1.0}


class Forecast(NamedTuple):
    """Forecast of B decisions, M metrics; the first axis of pairs is (keep the present allocation, take the decided
    one).

    Attributes:
        mean, low, high: metrics of the next iteration at the decided allocation, in their units, [B, M].
        projected: value to compare with the target: sum over the run, or typical value over the remaining iterations,
            [2, B, M].
        excess: relative miss of the target, negative if it is met with slack, [2, B, M]; −∞ without target.
        chance: probability to meet the target, [2, B, M]; NaN: unknown.
        rest: seconds of the remaining run, [2, B].
        cost: cost of the remaining run, in the prices' currency, [2, B].
        rate: cost per second of the next iteration at the decided allocation, [B].
    """

    mean: Array
    low: Array
    high: Array
    projected: Array
    excess: Array
    chance: Array
    rest: Array
    cost: Array
    rate: Array


def forecast(
    projector: Projector, state: State, hold: Indices, chosen: Indices, pause: Array, then: Indices | None = None
) -> Forecast:
    """Forecast B runs that move from row ``hold`` [B] of the grid to ``chosen`` [B], which takes ``pause`` [B] seconds.

    ``then`` [B]: row of the grid that follows after the next iteration in both cases; −1 or None: both are held to the
    end."""
    layout, pair = projector.layout, np.array([hold, chosen])
    after = None if then is None or (then < 0).all() else np.where(then >= 0, then, pair)
    coming, pauses = announced_iterations(projector, state), np.array([0 * pause, pause])
    if after is not None:
        returning = projector.grid_levels[pair] != projector.grid_levels[after]  # [2, B, R]
        pauses = pauses + returning @ projector.change_seconds
    left, apart = remaining(projector, state, pair, coming, after)
    projected, rest = _project_run(projector, state, left, apart)
    rest += pauses
    if layout.spec.metrics[layout.seconds].scope == "run":
        projected[:, :, layout.seconds] += pauses
    rates = (layout.allocations[pair] * state.prices).sum(axis=2) * projector.hours_per_second
    mean, low, high = next_iteration(projector, state, chosen, coming, pause)
    excess = _excess(projector, state, projected)
    if projector.table.informed:
        chance = chances_of(projector, state, left, apart, pauses).transpose(1, 2, 0)
    else:
        chance = np.full(projected.shape, np.nan)
    cost = rates * rest
    if after is not None:
        _, later = _project_run(projector, state, left.taken_over(), apart)
        taking_over = (layout.allocations[after] * state.prices).sum(axis=2) * projector.hours_per_second
        cost += later * (taking_over - rates)
    return Forecast(mean, low, high, projected, excess, chance, rest, cost, rates[1])


def _project_run(projector: Projector, state: State, left: Remaining, apart: State) -> tuple[Array, Array]:
    """Return projected metrics, [2, B, M], and seconds of the remaining run, [2, B], averaged over the ensemble."""
    projected, rest = _projected_metrics(left, apart), _rest(left, apart, projector.layout.seconds)
    if apart is state:
        return projected, rest
    count, weights = projector.members, member_weights(state)
    by_run = projected.reshape(2, -1, count, projected.shape[2]), rest.reshape(2, -1, count)
    return np.einsum("pbkm,bk->pbm", by_run[0], weights), np.einsum("pbk,bk->pb", by_run[1], weights)


def _rest(left: Remaining, state: State, metric: int) -> Array:
    """Return the expected sum of a metric over the remaining run under the posterior of the run effect, [2, B]: if the
    present allocation is kept, and if the decided one is taken."""
    return left.rest(metric) * np.exp(log_factor(left.ahead, state, metric))


def _projected_metrics(left: Remaining, state: State) -> Array:
    layout = left.ahead.layout
    count = np.maximum(layout.iterations - state.iteration, 1)
    out = np.full((2, len(count), len(layout.metrics)), np.nan)
    for index, metric in enumerate(layout.spec.metrics):
        if metric.scope == "run":
            out[:, :, index] = state.elapsed[:, index] + _rest(left, state, index)
        elif metric.target is not None:
            logs = left.sums(index, logs=True) / count
            out[:, :, index] = np.exp(logs + state.effect[:, index])
    return out


def _excess(projector: Projector, state: State, projected: Array) -> Array:
    signs, tracked = _goals(tuple(metric.goal for metric in projector.layout.spec.metrics))
    relative = signs * (projected / state.targets - 1)
    if tracked is not None:
        relative = np.where(tracked, np.abs(relative), relative)
    relative[np.isnan(relative)] = -np.inf
    return relative


@lru_cache
def _goals(goals: tuple[str, ...]) -> tuple[Array, NDArray[np.bool_] | None]:
    tracked = np.array([goal == "track" for goal in goals])
    return np.array([SIGNS[goal] for goal in goals]), tracked if tracked.any() else None


class Following(NamedTuple):
    """Expectation of the next iteration without the run effect, in natural logarithms; B runs, M metrics, K members.

    Attributes:
        logs: expected logarithms of the metrics, [B, M].
        offsets: offsets of each ensemble member's logarithms from these, [B, K, M]; None for a single model.
        unknown: variance of the logarithms by unknown features, [B, M].
        noise: variance of the logarithms by noise and unknown features, [B, M].
    """

    logs: Array
    offsets: Array | None
    unknown: Array
    noise: Array


def following(projector: Projector, state: State, chosen: Indices, told: Announced | None) -> Following:
    """Return the expectation of the next iteration at rows ``chosen`` [B] of the grid: with the announced features
    ``told`` or, if None or for runs that announced none, averaged over the samples' features."""
    ahead = projector.ahead
    usual = _at(ahead, projector, state, chosen, ahead.point(state.features))
    if told is None:
        return usual
    known = _at(projector, projector, state, chosen, told.next)
    which = (told.counts > 0)[:, None]
    offsets = usual.offsets
    if offsets is not None and known.offsets is not None:
        offsets = np.where(which[:, :, None], known.offsets, offsets)
    logs, unknown, noise = (
        np.where(which, getattr(known, name), getattr(usual, name)) for name in ("logs", "unknown", "noise")
    )
    return Following(logs, offsets, unknown, noise)


def _at(read: Projector, projector: Projector, state: State, chosen: Indices, point: Point) -> Following:
    at = chosen, point, state.iteration
    offsets = read.offsets(*at) if read.members > 1 else None
    noise = read.noise(state.iteration)
    unknown = np.maximum(noise - projector.noise(state.iteration), 0) if read is not projector else 0 * noise
    return Following(read.log_mean(*at), offsets, unknown, noise)


def next_iteration(
    projector: Projector, state: State, chosen: Indices, told: Announced | None, pause: Array
) -> tuple[Array, Array, Array]:
    """Return mean, low and high of the next iteration's M metrics, [B, M] each, at rows ``chosen`` [B] of the grid.

    ``told``: announced iterations (None: none); ``pause`` [B]: seconds that the change takes, added to the duration.
    The interval's width combines, in quadrature, the model's within-run offsets, their increase by the uncertainty of
    the run effect, the disagreement of ensemble members, and unknown features; it is wider in noisier iterations. With
    more reports the run's own errors replace the samples' scale."""
    coming, reach = following(projector, state, chosen, told), _width(projector.table.level)
    centre, between = coming.logs + state.effect, coming.unknown
    if coming.offsets is not None:
        offsets, weights = coming.offsets, member_weights(state)[:, None]
        each = offsets + state.effects.reshape(offsets.shape) - state.effect[:, None]
        middle = (weights @ each)[:, 0]
        between = between + (weights @ each**2)[:, 0] - middle**2
        centre = centre + middle
    unknown, noise = state.variance + drift_variance(projector, state), projector.noise(state.iteration)
    between = between * reach**2
    own = between + (unknown + noise) * reach**2
    loud, open_share = noise / projector.noise_variance, np.minimum(unknown / projector.open_variance, 1)
    residual, marginal = projector.spans
    usual = between + loud * residual + open_share * marginal  # [low or high, B, M]
    down, up = np.sqrt(own_scale(projector, state, usual, own))
    variance = coming.noise
    if projector.table.noise_weight:
        variance = variance * np.minimum(noise_scale(projector, state), 1)
    mean = np.exp(centre + variance / 2)
    low, high = np.exp(centre - down), np.exp(centre + up)
    for values in (mean, low, high):
        values[:, projector.layout.seconds] += pause
    return mean, low, high


@lru_cache
def _width(level: float) -> float:
    return NormalDist().inv_cdf((1 + level) / 2)
