"""Heuristics of kind `iterative`, and their publication as policies."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.announced import announced_iterations, remaining
from app.kinds.iterative.chance import assured_outlook, chances
from app.kinds.iterative.moves import action_towards
from app.kinds.iterative.observation import everywhere, outlook, reachable, reference_cost
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import SECONDS
from app.kinds.iterative.state import State, aimed, begin, has_probability, log_factor, member_weights
from app.policies.base import RETURN_SCALE, Arrays, IncompatibleArtifact, check_layers
from app.policies.functions import linear, tanh

Array = NDArray[Any]
BAND = (0.85, 1.0)  # of the target: below it the threshold rule gives back, above it adds
GAINS = (0.5, 0.5, 0.1)  # proportional, integral, derivative
MODEL_PREDICTIVE = "model_predictive"
TARGET_RATIO = (0.5, 2.0)  # lowest and highest target of a run, over the workload's, under which rules were compared
SURE = 4.0  # standard deviations between members that an iteration's gain must exceed
TIE = 1e-9  # relative difference of values below which nothing is gained
LARGEST_PLAN = 2_000_000  # allocations × runs that are weighed at once


@dataclass(frozen=True)
class Heuristic:
    """A rule as a policy.

    Attributes:
        name: name of the rule in decisions.
        rule: function that chooses an action per run.
        everywhere: whether ``apply`` uses it also for runs with own terms, for which it was not evaluated.
    """

    name: str
    rule: Callable[[Situation], Choice]
    everywhere: bool = False

    def act(self, situation: Situation) -> Choice:
        """Choose an action for each run of the situation by the rule."""
        return self.rule(situation)


def best_allocation(projector: Projector, state: State) -> NDArray[np.int16]:
    """Return the allocation (levels of R resources) of best expected return if held to the end, for B runs, [B, R].

    It may be out of reach in one step, and meets required probabilities if any does. With an ensemble only the measured
    range is searched."""
    batch, grid, state = len(state.iteration), projector.grid_levels, aimed(projector, state)
    share = max(1, LARGEST_PLAN // len(grid))
    best = [_best(projector, _rows(state, slice(n, n + share))) for n in range(0, max(batch, 1), share)]
    return grid[np.concatenate(best)].astype(np.int16)


def _best(projector: Projector, state: State) -> NDArray[np.intp]:
    options, untried = everywhere(projector, state), _outside_measured(projector)
    expected = outlook(projector, state, options)
    if has_probability(state).any():
        sure = assured_outlook(projector, state, options)
        sure[untried] = -np.inf
        expected = np.where(sure.max(axis=0) == -np.inf, expected, sure)
    expected[untried] = -np.inf
    return expected.argmax(axis=0)


def _outside_measured(projector: Projector) -> NDArray[np.bool_]:
    """Return a mask of the A grid rows outside the measured range, [A]; all False without an ensemble."""
    table, units = projector.table, projector.units(projector.grid_levels)
    half = projector.steps / 2  # the samples' bounds lie on the grid, but for rounding
    beyond = (units < table.seen_low - half) | (units > table.seen_high + half)
    outside = np.asarray(beyond.any(axis=1), np.bool_)
    return outside if projector.members > 1 and not outside.all() else np.zeros_like(outside)


def _rows(state: State, rows: slice | NDArray[np.bool_]) -> State:
    return State(*(field[rows] for field in state))


def first_allocation(projector: Projector, state: State) -> NDArray[np.int16]:
    """Return the allocation to begin B runs with, levels [B, R]: the model's best, or the spec's without a model."""
    if not projector.table.informed:
        return np.tile(projector.layout.start_levels, (len(state.iteration), 1)).astype(np.int16)
    return best_allocation(projector, state)


def _hold(situation: Situation) -> Choice:
    batch = len(situation.state.iteration)
    return Choice(np.full(batch, situation.projector.layout.noop, np.intp))


def _static_best(situation: Situation) -> Choice:
    """Choose the action towards the allocation that is best before the run begins, and stay there."""
    state, projector = situation.state, situation.projector
    terms = np.concatenate([state.targets, state.probabilities, state.weights, state.prices, state.features], axis=1)
    _, first, back = np.unique(terms, axis=0, return_index=True, return_inverse=True, equal_nan=True)
    fresh = begin(
        projector,
        np.tile(projector.layout.start_levels, (len(first), 1)),
        targets=state.targets[first],
        probabilities=state.probabilities[first],
        weights=state.weights[first],
        prices=state.prices[first],
        features=state.features[first],
    )
    return _towards(situation, best_allocation(projector, fresh)[back.reshape(-1)])


def _threshold(situation: Situation) -> Choice:
    """Choose one level more of every resource if pace over target is above ``BAND``, one less if below."""
    pressure = np.exp(_pressure(situation.projector, situation.state)[1])
    direction = np.where(pressure > BAND[1], 1, np.where(pressure < BAND[0], -1, 0))
    return _towards(situation, situation.state.levels + direction[:, None])


def _pid(situation: Situation) -> Choice:
    """Choose by proportional–integral–derivative control of the log ratio of pace to target; the run's sums, not the
    rule, hold its memory."""
    now, projected, before = _pressure(situation.projector, situation.state)
    kp, ki, kd = GAINS
    signal = kp * now + ki * projected + kd * (now - before)
    levels = np.array(situation.projector.layout.levels)
    return _towards(situation, situation.state.levels + np.rint(signal[:, None] * levels / 2).astype(int))


def _aimed(situation: Situation) -> Situation:
    """Return the situation with targets for which actions are valued: tighter where a slower pace is declared."""
    return situation._replace(state=aimed(situation.projector, situation.state))


def _model_predictive(situation: Situation) -> Choice:
    """Choose the best action if held; for runs whose iterations differ, the best for the next iteration alone."""
    best, differ = best_held(situation), has_phases(situation.projector, situation.state)
    if not differ.any():
        return best
    assert best.values is not None  # noqa: S101 - it computes values of all actions
    action, values = _for_next(situation, best.action, best.values)
    return Choice(np.where(differ, action, best.action), np.where(differ[:, None], values, best.values))


def best_held(situation: Situation) -> Choice:
    """Choose the action of best expected return if its allocation is held, among those that meet required
    probabilities, if any does."""
    if has_probability(situation.state).any():
        return _assured(situation)
    expected = situation.view.outlook
    return Choice(expected.argmax(axis=1), expected)


def has_phases(projector: Projector, state: State) -> NDArray[np.bool_]:
    """Return a mask [B] of the runs with a deadline as their only target, or none, and iterations known to differ."""
    aimed_at = [metric for metric in projector.layout.spec.metrics if metric.target]
    if any((metric.name, metric.scope, metric.goal) != (SECONDS, "run", "at_most") for metric in aimed_at):
        return np.zeros(len(state.iteration), np.bool_)
    coming = announced_iterations(projector, state)
    known = np.zeros(len(state.iteration), np.bool_) if coming is None else coming.counts > 0
    return np.asarray(known | (projector.ahead.bins > 1), np.bool_)


def continuation(situation: Situation) -> NDArray[np.integer]:
    """Return for each of B runs the row of the allocation grid that is best after the next iteration, [B]; −1: its
    iterations don't differ, so that the decision is held."""
    projector, state = situation.projector, situation.state
    differ = has_phases(projector, state)
    if not differ.any():
        return np.full(len(differ), -1)
    situation = _aimed(situation)
    options = reachable(projector, state, situation.view.mask)
    rows = options.allocation[best_held(situation).action, np.arange(len(differ))]
    return np.where(differ, rows, -1)


def _for_next(
    situation: Situation, back: NDArray[np.integer], held_values: NDArray[np.floating]
) -> tuple[NDArray[np.integer], NDArray[np.floating]]:
    """Find the best action for the next iteration alone, at the price of time implied by ``back`` [B], the best if
    held; ``held_values`` [B, N]: expected returns if held.

    Slower allocations held to the end save money for additional time: the best such rate is the value of a second (the
    Lagrange multiplier of the deadline), or the expected cost of lateness if that is more. At that price, iterations
    that scale badly get few resources, and those that scale well get many. Only gains that exceed ``SURE`` standard
    deviations between ensemble members count, as single iterations' scaling is uncertain. Required probabilities hold
    for the action followed by the held one.

    Returns:
        Actions of B runs, [B], and values of N actions, [B, N], on the scale of ``held_values``, as if each remaining
        iteration gained as much.
    """
    projector, state, view, layout = situation.projector, situation.state, situation.view, situation.projector.layout
    options, seconds = reachable(projector, state, view.mask), layout.seconds
    runs, legal = np.arange(len(back)), view.mask.T
    pause, change = np.broadcast_to(options.pause, legal.shape), options.change  # there, and ``back``
    for resource, deltas in enumerate(layout.deltas.T):
        returning = np.abs(deltas[:, None] - deltas[back])
        pause = pause + (returning != 0) * projector.change_seconds[resource]
        change = change + projector.share_moved(returning)

    coming, goal = announced_iterations(projector, state), options.allocation[back, runs]
    left, apart = remaining(projector, state, options.allocation, coming)
    factor = np.exp(log_factor(left.ahead, apart, seconds))
    members = np.ones((len(runs), 1)) if apart is state else member_weights(state)
    logs, noise = left.next(seconds)
    rest, following = (
        (expected * factor).reshape(len(expected), *members.shape)
        for expected in (left.rest(seconds), np.exp(logs + noise / 2))
    )
    rest = np.einsum("nbk,bk->nb", rest, members)
    rate = options.rate * (state.weights[:, 1] / reference_cost(projector, state))
    cost, slower = rest * rate, rest - rest[back, runs]
    saved = np.where(legal & (slower > 0), cost[back, runs] - cost, 0)
    price = (saved / np.where(slower > 0, slower, 1)).max(axis=0)
    metric = layout.spec.metrics[seconds]
    if metric.target:
        late = 1 - chances(projector, state, goal[None], options.pause[back].T)[seconds, 0]
        price = np.maximum(price, late * state.weights[:, 0] * metric.weight / state.targets[:, seconds])

    spent = (following + pause[..., None]) * (rate + price)[..., None]  # [N, B, K]
    gains = spent[back, runs] - spent
    gain = np.einsum("nbk,bk->nb", gains, members)
    spread = np.sqrt(np.einsum("nbk,bk->nb", (gains - gain[..., None]) ** 2, members))
    gain += state.weights[:, 2] * (change[back, runs] - change)
    to_come = np.maximum(layout.iterations - state.iteration, 1)
    best = held_values[runs, back]
    values = np.where(gain > SURE * spread, best + gain * to_come, np.minimum(held_values.T, best))
    values = np.where(legal, values, -np.inf)
    required = has_probability(state)[:, seconds]
    if required.any():
        then = np.broadcast_to(goal, options.allocation.shape)
        sure = chances(projector, state, options.allocation, pause, then)[seconds] >= state.probabilities[:, seconds]
        values = np.where(required & sure[back, runs] & ~sure, -np.inf, values)
    action = values.argmax(axis=0)
    ahead = values[action, runs] > values[back, runs] + TIE * np.abs(values[back, runs])
    return np.where(ahead, action, back), values.T


def _assured(situation: Situation) -> Choice:
    """Choose the best action that meets every required probability, else a step towards the best such allocation.

    If no allocation does, or that step is not to be had, the action of best expected return."""
    projector, state, view = situation.projector, situation.state, situation.view
    options, stay = reachable(projector, state, view.mask), projector.layout.noop
    values = assured_outlook(projector, state, options, stay).T
    values = np.where(view.mask, values, -np.inf)
    action, beyond = values.argmax(axis=1), values.max(axis=1) == -np.inf
    if beyond.any():
        far = _rows(state, beyond)
        sure = assured_outlook(projector, far, everywhere(projector, far))
        towards = action_towards(projector.layout, far.levels, projector.grid_levels[sure.argmax(axis=0)])
        only = np.where(np.arange(values.shape[1]) == towards[:, None], 0, -np.inf)
        none = (sure.max(axis=0) == -np.inf) | ~view.mask[beyond, towards]
        values[beyond] = np.where(none[:, None], view.outlook[beyond], only)
        action[beyond] = values[beyond].argmax(axis=1)
    return Choice(action, values)


def _towards(situation: Situation, goal: NDArray[np.integer]) -> Choice:
    layout = situation.projector.layout
    inside = np.clip(goal, 0, np.array(layout.levels) - 1)
    return Choice(action_towards(layout, situation.state.levels, inside))


def _pressure(projector: Projector, state: State) -> tuple[Array, Array, Array]:
    """Return the natural logarithm of pace over target of the most critical metric, [B] each: of the last iteration,
    projected to the end, and of the mean so far; 0 without targets."""
    layout = projector.layout
    worst = [np.full(len(state.iteration), -np.inf) for _ in range(3)]
    count = np.maximum(state.iteration, 1)
    for i, metric in enumerate(layout.spec.metrics):
        if metric.target is None:
            continue
        sign = -1 if metric.goal == "at_least" else 1
        now = np.where(np.isnan(state.measured[:, i]), state.targets[:, i], state.measured[:, i])
        mean = np.where(state.iteration > 0, state.elapsed[:, i] / count, now)
        projected = now
        if metric.scope == "run":
            projected = (state.elapsed[:, i] + now * (layout.iterations - state.iteration)) / layout.iterations
        target = state.targets[:, i] / (layout.iterations if metric.scope == "run" else 1)
        with np.errstate(divide="ignore"):  # of 0, which is beyond any target
            for worse, pace in zip(worst, (now, projected, mean), strict=True):
                np.maximum(worse, sign * np.log(pace / target), out=worse)
    now, projected, mean = (np.where(np.isfinite(w), w, 0.0) for w in worst)
    return now, projected, mean


HEURISTICS: dict[str, Heuristic] = {
    rule.name: rule
    for rule in (
        Heuristic("hold", _hold),
        Heuristic("static_best", _static_best),
        Heuristic("threshold", _threshold),
        Heuristic("pid", _pid),
        Heuristic(MODEL_PREDICTIVE, lambda situation: _model_predictive(_aimed(situation))),
    )
}


WITHOUT_MODEL = ("hold", "threshold", "pid")
"""Heuristics that need no domain model."""


def default_heuristic(projector: Projector) -> Heuristic:
    """Return the heuristic used without an agent: the domain model's rule, else model-predictive control.

    It is the threshold rule without a domain model, and model-predictive control, the only rule that considers it, with
    a required probability in the spec."""
    if not projector.table.informed:
        return HEURISTICS["threshold"]
    required = any(metric.probability is not None for metric in projector.layout.spec.metrics)
    return HEURISTICS[MODEL_PREDICTIVE if required else projector.table.rule or MODEL_PREDICTIVE]


def own_terms(projector: Projector, state: State) -> NDArray[np.bool_]:
    """Return a mask [B] of the runs with terms for which only model-predictive control was evaluated.

    These are a required probability, or a target beyond ``TARGET_RATIO`` times the workload's; all False without a
    model."""
    if not projector.table.informed:
        return np.zeros(len(state.iteration), np.bool_)
    low, high = (ratio * projector.layout.targets for ratio in TARGET_RATIO)
    off = (state.targets < low) | (state.targets > high)  # no number is never off
    return np.asarray((has_probability(state) | off).any(axis=1), np.bool_)


def apply(rule: Heuristic, situation: Situation) -> Choice:
    """Choose by ``rule``, but by model-predictive control for runs with own terms.

    The rule's choices have infinite value, as it computes none, so that the guard accepts them."""
    choice = rule.act(situation)
    if rule.name == MODEL_PREDICTIVE or rule.everywhere:
        return choice
    required = own_terms(situation.projector, situation.state)
    if not required.any():
        return choice
    assured = HEURISTICS[MODEL_PREDICTIVE].act(situation)
    assert assured.values is not None  # noqa: S101 - it computes values of all actions
    values = np.zeros(assured.values.shape)
    values[np.arange(len(values)), choice.action] = np.inf
    values = np.where(required[:, None], assured.values, values)
    return Choice(np.where(required, assured.action, choice.action), values)


# Heuristics as publishable policies.


@dataclass(frozen=True)
class RulePolicy:
    """Base of policies that ``config`` describes whole, and that look at more of a run than its observation."""

    config: dict[str, Any]

    @property
    def arrays(self) -> Arrays:
        """Empty: a rule has no arrays of parameters."""
        return {}


class HeuristicPolicy(RulePolicy):
    """Policy of the heuristic named by ``config["heuristic"]``."""

    @property
    def name(self) -> str:
        """Name of the heuristic."""
        return str(self.config["heuristic"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct the policy from a published config and arrays.

        Raises:
            IncompatibleArtifact: ``config["heuristic"]`` names no heuristic, or ``arrays`` isn't empty.
        """
        if config.get("heuristic") not in HEURISTICS or arrays:
            raise IncompatibleArtifact(f"no heuristic is called {config.get('heuristic')!r}")
        return cls(config)

    def act(self, situation: Situation) -> Choice:
        """Choose an action for each run by the heuristic."""
        return HEURISTICS[self.name].act(situation)


class TunedNumbers(NamedTuple):
    """Numbers by which ``TunedPolicy`` departs from model-predictive control; the defaults are that rule itself.

    Attributes:
        target: factor of targets that must not be exceeded; targets that must be reached are divided by it.
        risk: factor of the variance of the log run effect (factor between a run's metrics and the model's).
        follow: how far the mean recent error shifts the expected pace, in standard deviations of the noise.
        ignored: size of the mean recent error, in those deviations, up to which it shifts nothing.
    """

    target: float = 1.0
    risk: float = 1.0
    follow: float = 0.0
    ignored: float = 0.0


class TunedPolicy(RulePolicy):
    """Model-predictive control with targets and run effects changed by ``config["numbers"]``, a ``TunedNumbers``."""

    @property
    def name(self) -> str:
        """Name of the rule in decisions and reports."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct the policy from a published config and arrays.

        Raises:
            IncompatibleArtifact: a number is missing, unknown or not finite, or ``arrays`` isn't empty.
        """
        numbers = config.get("numbers")
        known = isinstance(numbers, dict) and set(numbers) == set(TunedNumbers._fields) and not arrays
        if not known or not all(isinstance(n, float) and math.isfinite(n) for n in config["numbers"].values()):
            raise IncompatibleArtifact(f"a tuned rule needs finite {', '.join(TunedNumbers._fields)}, not {numbers!r}")
        return cls(config)

    def act(self, situation: Situation) -> Choice:
        """Choose by model-predictive control on the changed states, by expected returns under them (values, [B, N])."""
        projector, view = situation.projector, situation.view
        state = self._changed(projector, situation.state)
        expected = outlook(projector, state, reachable(projector, state, view.mask)).T
        changed = view._replace(outlook=np.where(view.mask, expected, -np.inf))
        return _model_predictive(situation._replace(state=state, view=changed))

    def _changed(self, projector: Projector, state: State) -> State:
        """Return the states of B runs with targets and estimated run effects changed by the tuned numbers."""
        numbers, dtype = TunedNumbers(**self.config["numbers"]), state.targets.dtype.type
        factors = [_TARGET_SIGNS[metric.goal] for metric in projector.layout.spec.metrics]
        trend = np.sign(state.trend) * np.maximum(np.abs(state.trend) - dtype(numbers.ignored), 0)
        shift = (numbers.follow * np.sqrt(projector.noise_variance) * trend).astype(state.effect.dtype)
        return state._replace(
            targets=state.targets * np.power(numbers.target, factors).astype(dtype),
            variance=state.variance * dtype(numbers.risk),
            effect=state.effect + shift,
            effects=state.effects + np.tile(shift, state.log_weights.shape[1]),
        )


_TARGET_SIGNS = {"at_most": 1, "at_least": -1, "track": 0}
_LAYERS = ("hidden.0", "hidden.1", "correction")
_FAR = 5.0  # standard deviations of the states of training beyond which an input says no more
_WORST = 20.0  # hundredths of return by which an action may be worse than the best in the network's input


class ImprovedRulePolicy:
    """A tuned rule whose values of actions a network corrects; a network of zeros decides exactly as the rule.

    ``config``: ``algorithm``; ``numbers`` and ``hysteresis`` of the tuned rule. ``arrays``: ``centre`` and ``scale``
    [D], mean and standard deviation of the network's D inputs; its layers ``hidden.0``, ``hidden.1`` and
    ``correction``, each with ``.weight`` [out, in] and ``.bias`` [out]; the last gives N corrections, in hundredths of
    return."""

    def __init__(self, config: dict[str, Any], arrays: Arrays) -> None:
        self.config, self.arrays = config, arrays
        self.rule = TunedPolicy.build({"algorithm": config["algorithm"], "numbers": config.get("numbers")}, {})

    @property
    def name(self) -> str:
        """Name of the training algorithm."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct the policy from a published config and arrays.

        Raises:
            IncompatibleArtifact: numbers of the rule or arrays are missing or don't fit together.
        """
        names = ["centre", "scale", *(f"{layer}.{part}" for layer in _LAYERS for part in ("weight", "bias"))]
        missing = [name for name in names if name not in arrays]
        if missing:
            raise IncompatibleArtifact(f"the improved rule lacks {', '.join(missing)}")
        check_layers(arrays)
        widths = [len(arrays["centre"]), *(len(arrays[f"{layer}.bias"]) for layer in _LAYERS[:-1])]
        reads = [arrays[f"{layer}.weight"].shape[1] for layer in _LAYERS]
        if reads != widths or arrays["scale"].shape != arrays["centre"].shape:
            raise IncompatibleArtifact(f"layers of {widths} numbers can't be read by layers that read {reads}")
        if not math.isfinite(config.get("hysteresis", math.nan)):
            raise IncompatibleArtifact(f"the hysteresis must be a finite number, not {config.get('hysteresis')}")
        return cls(config, {name: np.ascontiguousarray(array, np.float32) for name, array in arrays.items()})

    def act(self, situation: Situation) -> Choice:
        """Choose the legal action of highest corrected value for each run, and these values in units of return."""
        values, inputs = self.read(situation)
        values = values + corrections(inputs, self.arrays)
        return Choice(values.argmax(axis=1), values / RETURN_SCALE)

    def read(self, situation: Situation) -> tuple[Array, NDArray[np.float32]]:
        """Return the rule's values of N actions in hundredths of return, [B, N], and the network's D inputs, [B, D].

        The rule's hysteresis is added to the value of no change, so that the highest value is the guarded rule's
        choice; −∞ if illegal. Inputs: the observation, these values, and what the filter of the run effect holds of
        recent errors (trend, standard deviation, mean square)."""
        state, mask = situation.state, situation.view.mask
        choice = self.rule.act(situation)
        assert choice.values is not None  # noqa: S101 - it computes values of all actions
        values, runs = np.where(mask, choice.values, -np.inf), np.arange(len(mask))
        values *= RETURN_SCALE
        # The rule takes what is ahead by more than rounding: the action that it takes has the highest value.
        values[runs, choice.action] = np.nextafter(values.max(axis=1), np.inf, dtype=values.dtype)
        values[:, situation.projector.layout.noop] += self.config["hysteresis"] * RETURN_SCALE
        relative = np.maximum(values - values.max(axis=1, keepdims=True), -_WORST)
        deviation = np.log(np.maximum(state.variance, 1e-12)) / 2
        parts = [situation.view.observation, relative, state.trend, deviation, state.errors]
        return values, np.concatenate(parts, axis=1).astype(np.float32)


def corrections(inputs: Any, arrays: Any) -> Any:
    """Return the network's corrections of N actions in hundredths of return, [B, N], of ``inputs`` [B, D].

    ``arrays`` are those of ``ImprovedRulePolicy``; arrays of NumPy and of torch give the same."""
    hidden = ((inputs - arrays["centre"]) / arrays["scale"]).clip(-_FAR, _FAR)
    for layer in _LAYERS[:-1]:
        hidden = tanh(linear(hidden, arrays[f"{layer}.weight"], arrays[f"{layer}.bias"]))
    return linear(hidden, arrays["correction.weight"], arrays["correction.bias"])
