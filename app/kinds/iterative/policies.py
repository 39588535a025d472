"""Artifacts of agents of kind `iterative`, the planner's policy, and the guard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import IntEnum
from functools import lru_cache, reduce
from types import MappingProxyType
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.caps import Cap, left
from app.kinds.contract.kind import Term, Terms, around, changed_terms
from app.kinds.contract.policy import Choice, Situation
from app.kinds.iterative.announced import announced_iterations, remaining
from app.kinds.iterative.heuristics import (
    MODEL_PREDICTIVE,
    Heuristic,
    HeuristicPolicy,
    ImprovedRulePolicy,
    TunedPolicy,
    apply,
    default_heuristic,
)
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import ModelTable
from app.kinds.iterative.moves import action_towards
from app.kinds.iterative.observation import Options, everywhere, outlook, reachable, reference_cost
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import Spec
from app.kinds.iterative.state import STEADIER, State, has_probability, log_factor, member_weights, slowdown
from app.policies import artifact
from app.policies.artifact import SHARED, Artifact, Families
from app.policies.base import Arrays, IncompatibleArtifact, Published

# Policy of the dynamic programme: table of expected return by iteration, allocation, time left and run effect.


Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class PlannerPolicy:
    """Greedy policy in the post-decision values of a dynamic programme.

    ``arrays``: ``worth`` [P, K, A, X, E], expected return of running iteration k at an allocation and deciding
    optimally afterwards, for P pauses, X values of the time left and E of the log run effect; ``pauses`` [P], seconds;
    ``left_low``, ``left_high`` [K], range of the seconds left over the run effect (in equal ratios); ``effect_half``
    [K], half the range of the log effect. ``config``: ``algorithm``, ``slope`` (return per second of lateness)."""

    config: dict[str, Any]
    arrays: Arrays

    @property
    def name(self) -> str:
        """Name of the training algorithm."""
        return str(self.config["algorithm"])

    @classmethod
    def build(cls, config: dict[str, Any], arrays: Arrays) -> Self:
        """Construct from a published config and arrays.

        Raises:
            IncompatibleArtifact: an array is missing.
        """
        missing = {"worth", "pauses", "left_low", "left_high", "effect_half"} - arrays.keys()
        if missing:
            raise IncompatibleArtifact(f"the plan lacks {', '.join(sorted(missing))}")
        return cls(config, arrays)

    def act(self, situation: Situation) -> Choice:
        """Choose the legal action of highest expected return for each run."""
        values = self.values(situation.projector, situation.state, situation.view.mask)
        return Choice(values.argmax(axis=1), values)

    def values(self, projector: Projector, state: State, mask: NDArray[np.bool_]) -> Array:
        """Return the expected return-to-go of N actions for B runs, [B, N]; −∞ where ``mask`` [B, N] is False."""
        options = reachable(projector, state, mask)
        worth = self._look_up(projector, state, options) - self._moving(projector, state, options)
        worth[~mask.T] = -np.inf
        return worth.T

    def _moving(self, projector: Projector, state: State, options: Options) -> Array:
        """Return the loss of return by the change itself, [N, B]: money during the pause, and the change term."""
        weights = state.weights
        paid = options.pause * options.rate / reference_cost(projector, state)
        cost: Array = weights[:, 1] * paid + weights[:, 2] * options.change
        return cost

    def _look_up(self, projector: Projector, state: State, options: Options) -> Array:
        seconds, arrays = projector.layout.seconds, self.arrays
        k = np.minimum(state.iteration, arrays["worth"].shape[1] - 1)
        variant = np.abs(np.asarray(arrays["pauses"], np.float64)[:, None, None] - options.pause).argmin(axis=0)
        left = state.targets[:, seconds] - state.elapsed[:, seconds]
        if len(arrays["pauses"]) == 1:
            left = left - options.pause
        left = np.broadcast_to(left, options.allocation.shape)
        low, high = arrays["left_low"][k], arrays["left_high"][k]
        pace = np.exp(state.effect[:, seconds])
        inside = np.clip(left / pace, low, high)
        x, x_weights = stencil(np.log(inside / low), np.log(high / low), arrays["worth"].shape[3])
        half = arrays["effect_half"][k]
        effect = np.clip(state.effect[:, seconds], -half, half)
        e, e_weights = stencil(effect + half, 2 * half, arrays["worth"].shape[4])
        v = np.broadcast_to(variant, left.shape)
        near = arrays["worth"][v, k, options.allocation, x[:, None], e[None, :, None]]  # [4, 4, N, B]
        value: Array = (near * x_weights[:, None] * e_weights[None, :, None]).sum(axis=(0, 1))
        return value + np.minimum(left - low * pace, 0) * self.config["slope"]


def stencil(distance: Array, span: Array | float, count: int) -> tuple[NDArray[np.intp], Array]:
    """Compute four-point Lagrange interpolation at ``distance`` among ``count`` nodes equally spaced over ``span``.

    Returns:
        Indices of nodes and their weights, [4, ...] each for ``distance`` [...]; with fewer than 4 nodes, index 0 and
        weight 1, [1, ...].
    """
    if count < 4:
        return np.zeros((1, *np.shape(distance)), np.intp), np.ones((1, *np.shape(distance)))
    exact = distance / np.maximum(span, 1e-12) * (count - 1)
    first = np.clip(exact.astype(np.intp) - 1, 0, count - 4)
    p = exact - first
    p0, p1, p2, p3 = p, p - 1, p - 2, p - 3
    weights = np.stack([-p1 * p2 * p3 / 6, p0 * p2 * p3 / 2, -p0 * p1 * p3 / 2, p0 * p1 * p2 / 6])
    return first + np.arange(4).reshape(4, *[1] * np.ndim(first)), weights


# Artifacts of kind ``iterative``: policy families, and the conditions a policy was trained under.


KIND = "iterative"
FAMILIES: Families = {
    **SHARED,
    "planner": PlannerPolicy,
    "heuristic": HeuristicPolicy,
    "tuned": TunedPolicy,
    "improved": ImprovedRulePolicy,
}
UNTRAINABLE = f"{MODEL_PREDICTIVE} decides while a probability is required; set it to null to train agents"


@dataclass(frozen=True)
class Experience:
    """Conditions that a policy was trained under; outside of them a heuristic decides.

    Attributes:
        targets: targets by metric, in its unit.
        weights: weights of the reward's terms sla, cost and change.
        prices: price per unit and hour of each resource, in the layout's order.
        target_ratio: lowest and highest target, as factors of ``targets``.
        weight_ratio: lowest and highest weight and price, as factors of these.
        hysteresis: least expected gain in return of a change over staying.
    """

    targets: dict[str, float] = field(default_factory=dict, hash=False)
    weights: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()
    target_ratio: tuple[float, float] = (0.5, 2.0)
    weight_ratio: tuple[float, float] = (0.9, 1.1)
    hysteresis: float = 0.0


def experience_of(layout: Layout, hysteresis: float = 0.0) -> Experience:
    """Return the conditions of a training for ``layout``; ``hysteresis`` is a gain in return."""
    return replace(_of_spec(layout.spec), hysteresis=hysteresis)


def _of_spec(spec: Spec) -> Experience:
    targets = {m.name: m.target for m in spec.metrics if m.target is not None}
    weights = tuple(float(weight) for _, weight in spec.weights)
    return Experience(targets, weights, tuple(float(r.price_per_hour) for r in spec.resources))


def _read(made_for: Mapping[str, Any]) -> Experience:
    """Return the experience from the mapping that ``save`` stored; raises TypeError for unknown fields."""
    parts: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in made_for.items()
    }
    return Experience(**parts)


def terms(spec: Spec) -> Terms:
    """Return a spec's targets, weights, prices and required probabilities, with the bounds that the guard enforces."""
    made = _of_spec(spec)
    weights = {f"weight of {name}": value for (name, _), value in zip(spec.weights, made.weights, strict=False)}
    prices = {f"price of {r.name}": value for r, value in zip(spec.resources, made.prices, strict=False)}
    sure = {m.name: m.probability for m in spec.metrics if m.probability is not None}
    return {
        **{f"target of {name}": around(value, made.target_ratio) for name, value in made.targets.items()},
        **{name: around(value, made.weight_ratio) for name, value in (weights | prices).items()},
        **{f"required probability of {name}": Term(value, value, value, UNTRAINABLE) for name, value in sure.items()},
    }


def in_force(table: ModelTable, spec: Spec) -> ModelTable:
    """Return ``table`` without its chosen heuristic if targets, weights or prices left the bounds it was chosen for;
    else itself."""
    if table.rule is None or not changed_terms(table.terms, terms(spec)):
        return table
    return replace(table, rule=None, evidence="")


def save(policy: Published, layout: Layout, experience: Experience | None = None) -> bytes:
    """Serialise ``policy``, trained for ``layout`` under ``experience``; None: ``experience_of(layout)``."""
    made_for = asdict(experience or experience_of(layout))
    return artifact.save(policy, KIND, layout.observation_names, len(layout.deltas), made_for, FAMILIES)


def load(data: bytes) -> Artifact:
    """Deserialise a policy from bytes that ``save`` returned; the result's ``experience`` is an ``Experience``.

    Raises:
        IncompatibleArtifact: another format, an unknown policy family, or ``data`` is no artifact.
    """
    found = artifact.load(data, FAMILIES)
    return replace(found, experience=_read(found.experience))


def check(made: Artifact, layout: Layout) -> None:
    """Check that a policy fits ``layout``: its observation and number of actions.

    Raises:
        IncompatibleArtifact: the policy was made for another kind or layout.
    """
    made.check(KIND, layout.observation_names, len(layout.deltas))


# Guard: replaces actions whose gain is within noise, or whose state is outside the policy's training conditions.


UNEXPLAINED = 4.0  # standard deviations of the log run effect that the samples can't explain
MODEL_NOISE = 1e-3  # of return: a heuristic's predicted gain below it is within the noise of the model


class Verdict(IntEnum):
    """Outcome of the guard for a policy's choice: followed, or why another one replaces it: no change, the heuristic's
    choice, or a step towards an allocation within the run's caps."""

    FOLLOWED = 0
    WITHIN_NOISE = 1
    OUTSIDE_EXPERIENCE = 2
    FINISHED = 3
    BEYOND_CAP = 4


class GuardedChoice(NamedTuple):
    """Guarded decisions of B runs.

    Attributes:
        action: number of the action taken, [B].
        chosen: number of the action that the policy chose, [B].
        verdict: a ``Verdict`` per run, [B].
        values: the policy's expected return of each of N actions, [B, N]; None: it estimates none.
        outside: mask of runs outside the training conditions, [B], by cause; empty without an agent.
        memory: the policy's hidden state for its next decision, whatever the verdict, [B, H]; None: not recurrent.
        goals: row of the allocation grid to move to, by position of the runs ``BEYOND_CAP``.
    """

    action: NDArray[np.integer]
    chosen: NDArray[np.integer]
    verdict: NDArray[np.int8]
    values: NDArray[np.floating] | None
    outside: dict[str, NDArray[np.bool_]]
    memory: NDArray[np.float32] | None = None
    goals: Mapping[int, int] = MappingProxyType({})


def decide(situation: Situation, artifact: Artifact | None, rule: Heuristic | None = None) -> GuardedChoice:
    """Choose by the artifact's policy, or a heuristic without one, and apply the guard, whose checks may replace it.

    Args:
        situation: B runs, each at its next decision.
        artifact: policy of the deciding agent; None: the heuristic decides.
        rule: heuristic used without an agent and outside its training conditions; None: the default one.
    """
    heuristic, layout = rule or default_heuristic(situation.projector), situation.projector.layout
    choice = artifact.policy.act(situation) if artifact else apply(heuristic, situation)
    action, values = choice.action, choice.values
    verdict = np.zeros(len(action), np.int8)
    outside: dict[str, NDArray[np.bool_]] = {}
    strange = verdict != 0
    if artifact:
        outside = outside_conditions(situation, artifact.experience)
        strange = reduce(np.logical_or, outside.values())
        if strange.any():
            verdict[strange] = Verdict.OUTSIDE_EXPERIENCE
            action = np.where(strange, apply(heuristic, situation).action, action)
    over = situation.state.iteration >= layout.iterations
    stays = over
    if values is not None:
        values = np.fmax(values, -np.inf)  # no number is worth nothing
        still = _unconvincing(situation, action, values, hysteresis(situation, artifact)) & ~strange
        verdict[still] = Verdict.WITHIN_NOISE
        stays = over | still
    verdict[over] = Verdict.FINISHED
    action = np.where(stays, layout.noop, action)
    return GuardedChoice(_legal(situation, action), choice.action, verdict, values, outside, choice.memory)


def hysteresis(situation: Situation, artifact: Artifact | None) -> Array:
    """Return the least gain in expected return of a change over staying, [B]: the agent's; without one, ``MODEL_NOISE``
    or, where a shift of pace is declared, more."""
    projector, state = situation.projector, situation.state
    if artifact or not projector.slowdown:
        return np.full(len(state.iteration), artifact.experience.hysteresis if artifact else MODEL_NOISE)
    least: Array = MODEL_NOISE * np.exp(STEADIER * slowdown(projector, state))
    return least


def outside_conditions(situation: Situation, experience: Experience) -> dict[str, NDArray[np.bool_]]:
    """Return masks [B] of the runs outside the conditions that model and policy were trained for, by cause.

    Causes: allocation, features, run_effect, targets, weights, prices and probabilities."""
    projector, state = situation.projector, situation.state
    table, layout = projector.table, projector.layout
    unusual = (state.features < table.feature_low) | (state.features > table.feature_high)
    low, high = _made_for(tuple(layout.metrics), experience)
    terms = np.concatenate([state.targets, state.weights, state.prices], axis=1)
    targets, weights = len(layout.metrics), len(layout.weights)
    starts = (0, targets, targets + weights)
    off = np.logical_or.reduceat((terms < low) | (terms > high), starts, axis=1).T  # no number is never off
    return {
        "allocation": projector.far.take(layout.index(state.levels)),
        "features": np.logical_or.reduce(unusual, axis=1),
        "run_effect": np.logical_or.reduce(np.abs(state.effect) > UNEXPLAINED * projector.effect_scale, axis=1),
        **dict(zip(("targets", "weights", "prices"), off, strict=True)),
        "probabilities": np.logical_or.reduce(has_probability(state), axis=1),
    }


@lru_cache(maxsize=1024)
def _made_for(metrics: tuple[str, ...], experience: Experience) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lowest and the highest values trained for, [M + 3 + R] each, of M metrics' targets, the reward's 3
    weights and the prices of R resources, in this order; NaN: no bound."""
    targets = [experience.targets.get(name, np.nan) for name in metrics]
    rest = [*experience.weights, *experience.prices]
    ratios = np.array([experience.target_ratio] * len(targets) + [experience.weight_ratio] * len(rest))
    low, high = ratios.T * np.array(targets + rest)
    return low, high


def _unconvincing(
    situation: Situation, action: NDArray[np.integer], values: NDArray[np.floating], required: Array
) -> NDArray[np.bool_]:
    """Return a mask [B] of changes of allocation whose gain of ``values`` [B, N] is at most ``required`` [B]."""
    noop = situation.projector.layout.noop
    convincing = values[np.arange(len(action)), action] > values[:, noop] + required
    result: NDArray[np.bool_] = (action != noop) & ~convincing
    return result


def _legal(situation: Situation, action: NDArray[np.integer]) -> NDArray[np.integer]:
    """Return ``action`` [B] with no change for illegal actions, so that no policy's mistake reaches a launcher."""
    allowed = situation.view.mask[np.arange(len(action)), action]
    return np.where(allowed, action, situation.projector.layout.noop)


# Caps: allocations that are expected to complete a run within what is left of them.


def within_caps(
    situation: Situation, decided: GuardedChoice, planned: NDArray[np.integer], caps: Sequence[Sequence[Cap]]
) -> GuardedChoice:
    """Replace actions of B runs that lead beyond their ``caps`` by steps towards an allocation within them.

    ``planned`` [B]: rows of the allocation grid that the decided actions lead to, after the next iteration."""
    projector, state = situation.projector, situation.state
    if not projector.table.informed:
        return decided
    after = projector.grid_levels[planned]
    pause = ((after != state.levels) @ projector.change_seconds) * (state.iteration > 0)
    rate = (projector.units(after) * state.prices).sum(axis=1) * projector.hours_per_second
    share = _share(projector, state, caps, Options(planned[None], pause[None], pause[None], rate[None]))[0]
    beyond = np.flatnonzero((share > 1) & (decided.verdict != Verdict.FINISHED))
    action, verdict, goals = decided.action.copy(), decided.verdict.copy(), dict[int, int]()
    for i in map(int, beyond):
        one = State(*(field[i : i + 1] for field in state))
        goal = row_within(projector, one, caps[i], int(planned[i]))
        if goal != planned[i]:
            towards = int(action_towards(projector.layout, one.levels, projector.grid_levels[goal][None])[0])
            if not situation.view.mask[i, towards]:  # known to be refused: what is there stays
                towards, goal = projector.layout.noop, int(projector.layout.index(one.levels)[0])
            action[i], verdict[i], goals[i] = towards, Verdict.BEYOND_CAP, goal
    if not goals:
        return decided
    return decided._replace(action=action, verdict=verdict, goals=goals)


def row_within(projector: Projector, state: State, caps: Sequence[Cap], planned: int) -> int:
    """Return the row of the allocation grid with which one run (``state`` with B = 1) is expected to end within its
    caps: ``planned`` if it is, else that of the highest expected return; if none is, the one that exceeds them
    least."""
    grid = everywhere(projector, state)
    share = _share(projector, state, [caps], grid)[:, 0]
    if share[planned] <= 1 or not np.isfinite(share).any():
        return planned
    within = share <= 1
    if not within.any():
        return int(share.argmin())
    return int(np.where(within, outlook(projector, state, grid)[:, 0], -np.inf).argmax())


def _share(projector: Projector, state: State, caps: Sequence[Sequence[Cap]], options: Options) -> Array:
    """Return the share of what is left of the caps of B runs that each of K options, held to the end, is expected to
    use, [K, B]: above 1 it exceeds one; infinite or NaN: nothing is left."""
    ahead, apart = remaining(projector, state, options.allocation, announced_iterations(projector, state))
    at = projector.layout.seconds
    seconds = ahead.rest(at) * np.exp(log_factor(ahead.ahead, apart, at))
    if apart is not state:  # a column for each run and member
        each = seconds.reshape(len(seconds), len(state.iteration), -1)
        seconds = np.einsum("kbm,bm->kb", each, member_weights(state))
    seconds = seconds + options.pause
    spent = zip(caps, state.cost.tolist(), state.elapsed[:, at].tolist(), strict=True)
    rest = np.array([(left(own, "cost", cost), left(own, "seconds", took)) for own, cost, took in spent])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.fmax(seconds * options.rate / rest[:, 0], seconds / rest[:, 1])
