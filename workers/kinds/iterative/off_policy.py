"""Off-policy estimates of a candidate's return from logged runs, and the outcomes that users count per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.charts.text import MONEY, SHARE
from app.kinds.contract.kind import Outcome
from app.kinds.contract.policy import Situation
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Log, ModelTable
from app.kinds.iterative.moves import step
from app.kinds.iterative.observation import View, miss, reward, terms, view
from app.kinds.iterative.policies import decide
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.spec import SECONDS, Metric, Resource, Spec, Weights
from app.kinds.iterative.state import State, advance, begin, expect
from app.policies.artifact import Artifact
from workers.evaluation.statistics import jackknife, mean_interval

Array = NDArray[np.float64]
FEWEST_RUNS = 2
TRUSTED_SAMPLES = 10.0  # effective number of runs below which importance sampling is unreliable
SOFTNESS = 0.05  # share of uniform actions mixed into the candidate: a greedy policy has no overlap with a log
SMOOTHING = 1.0  # pseudo-count of each legal action in the estimate of the behaviour's probabilities


class TooFewRuns(ValueError):
    """There are too few finished runs to score a candidate; the message says how many are needed."""


@dataclass(frozen=True)
class Trace:
    """L logged runs of T iterations, and the candidate's decisions in them, one before each of iterations 1 … T − 1.

    Actions are numbers, of N. An outlook is the return that the domain model expects after an action.

    Attributes:
        actions: logged actions, [L, T − 1]; −1 if no action of the workload makes the logged change of allocation.
        chosen: the candidate's actions, [L, T − 1].
        legal: mask of legal actions, [L, T − 1, N].
        advised: action with the best outlook, [L, T − 1].
        chance: probability with which the logged action was taken, [L, T − 1]; NaN: not logged.
        rewards: unscaled reward of each iteration, [L, T].
        taken_value: outlook of the logged action, [L, T − 1].
        chosen_value: outlook of the candidate's action, [L, T − 1].
        mean_value: mean outlook over the legal actions, [L, T − 1].
    """

    actions: NDArray[np.int64]
    chosen: NDArray[np.int64]
    legal: NDArray[np.bool_]
    advised: NDArray[np.int64]
    chance: Array
    rewards: Array
    taken_value: Array
    chosen_value: Array
    mean_value: Array


def score(layout: Layout, table: ModelTable, artifact: Artifact, logs: Sequence[Log]) -> dict[str, Any]:
    """Estimate an agent's return from logged runs; unfinished runs are left out and counted.

    Returns:
        Numbers of finished ``runs`` and ``incomplete`` ones, ``logged`` (return that the runs had), ``replay``
        {``return``, ``advantage``}, ``importance`` (estimates by importance sampling), ``agreement`` (share of
        decisions, in 0…1, in which the agent takes the logged action). Intervals are 95 %.

    Raises:
        TooFewRuns: fewer than two runs are finished.
    """
    whole = [log for log in logs if len(log.levels) == layout.iterations]
    if len(whole) < FEWEST_RUNS:
        raise TooFewRuns(
            f"needs {FEWEST_RUNS} or more finished runs of {layout.iterations} iterations, has {len(whole)}"
        )
    projector = Projector(layout, table)
    trace = follow(projector, artifact, whole)
    logged = trace.rewards.sum(axis=1)
    replayed = replay(projector, artifact, whole)
    return {
        "runs": len(whole),
        "incomplete": len(logs) - len(whole),
        "logged": mean_interval(logged),
        "replay": {"return": mean_interval(replayed), "advantage": mean_interval(replayed - logged)},
        "importance": importance(trace, len(layout.deltas)),
        "agreement": float((trace.actions == trace.chosen).mean()),
    }


class _Moment(NamedTuple):
    """State and view of L runs before iteration ``number``, and what they report on it: ``levels`` [L, R], ``metrics``
    [L, M], ``features`` [L, F], and seconds ``paused`` by a change of allocation [L] (NaN: unknown)."""

    number: int
    state: State
    view: View
    levels: NDArray[np.int16]
    metrics: Array
    features: Array
    paused: Array


def _moments(projector: Projector, logs: Sequence[Log]) -> Iterator[_Moment]:
    levels, metrics, features, targets = (
        np.stack([getattr(log, name) for log in logs]) for name in ("levels", "metrics", "features", "targets")
    )
    paused = np.stack([np.full(len(log.levels), np.nan) if log.paused is None else log.paused for log in logs])
    state = begin(projector, levels[:, 0], targets=targets, features=features[:, 0])
    for t in range(levels.shape[1]):
        report = levels[:, t], metrics[:, t], features[:, t]
        yield _Moment(t, state, view(projector, state), *report, paused[:, t])
        state = advance(projector, state, *report, paused=paused[:, t])


def follow(projector: Projector, artifact: Artifact, logs: Sequence[Log]) -> Trace:
    """Let the agent ``artifact`` decide at each state of logged runs of equal length; the states do not change."""
    columns: dict[str, list[Any]] = {name: [] for name in Trace.__dataclass_fields__}
    rows = np.arange(len(logs))
    memory: NDArray[np.float32] | None = None
    for moment in _moments(projector, logs):
        after = advance(projector, moment.state, moment.levels, moment.metrics, moment.features, paused=moment.paused)
        paid = reward(moment.state.weights, terms(projector, moment.state, after))
        columns["rewards"].append(paid)
        if moment.number == 0:
            continue
        view = moment.view
        action = actions_of(projector.layout, moment.state.levels, moment.levels)
        decided = decide(Situation(projector, moment.state, view, memory), artifact)
        chosen, memory = decided.action, decided.memory
        columns["actions"].append(action)
        columns["chosen"].append(chosen)
        columns["legal"].append(view.mask)
        columns["advised"].append(view.outlook.argmax(axis=1))
        columns["chance"].append([np.nan if log.chances is None else log.chances[moment.number] for log in logs])
        known = np.where(action >= 0, action, projector.layout.noop)
        columns["taken_value"].append(view.outlook[rows, known])
        columns["chosen_value"].append(view.outlook[rows, chosen])
        columns["mean_value"].append(np.where(view.mask, view.outlook, 0.0).sum(axis=1) / view.mask.sum(axis=1))
    return Trace(**{name: np.stack(values, axis=1) for name, values in columns.items()})


def actions_of(layout: Layout, before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.int64]:
    """Return the actions [B] that change levels ``before`` to ``after``, [B, R] for R resources; −1: none does."""
    same = ((after - before)[:, None, :] == layout.deltas[None]).all(axis=2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def replay(projector: Projector, artifact: Artifact, logs: Sequence[Log]) -> Array:
    """Estimate each run's unscaled return [L] if the agent had decided, by expected metrics times logged deviations."""
    total = np.zeros(len(logs))
    ours: State | None = None
    memory: NDArray[np.float32] | None = None
    for moment in _moments(projector, logs):
        expected = expect(projector, moment.state, moment.levels, moment.features)
        measured = moment.metrics.copy()
        seconds = projector.layout.seconds
        pause = np.where(np.isnan(moment.paused), expected.pause, moment.paused)
        measured[:, seconds] = np.maximum(measured[:, seconds] - pause, 1e-3 * measured[:, seconds])
        residual = np.log(measured) - expected.logs
        if ours is None:
            before, levels = moment.state, moment.levels
        else:
            before = ours._replace(features=moment.features)
            decided = decide(Situation(projector, before, view(projector, before), memory), artifact)
            memory = decided.memory
            levels = step(projector.layout, before.levels, decided.action)
        expected = expect(projector, before, levels, moment.features)
        metrics = np.exp(expected.logs + residual)
        metrics[:, seconds] += expected.pause
        ours = advance(projector, before, levels, metrics, moment.features, expected)
        total += reward(before.weights, terms(projector, before, ours))
    return total


def importance(trace: Trace, actions: int) -> dict[str, Any]:
    """Estimate the candidate's return by importance sampling, its policy mixed with 5 % uniform actions.

    Args:
        actions: number of actions N.

    Returns:
        95 % jackknife intervals ``per_decision``, ``weighted``, ``doubly_robust``; ``effective_sample_size`` in runs;
        ``behaviour`` (``logged`` or ``estimated`` probabilities), ``softness`` (0.05), ``trusted`` (effectively 10
        runs or more).
    """
    known = not np.isnan(trace.chance).any()
    behaviour = trace.chance if known else estimated_behaviour(trace, actions)
    target = SOFTNESS / trace.legal.sum(axis=2) + (1.0 - SOFTNESS) * (trace.actions == trace.chosen)
    target = np.where(trace.actions < 0, 0.0, target)
    ratios = cumulative(target / behaviour)
    values = SOFTNESS * trace.mean_value + (1.0 - SOFTNESS) * trace.chosen_value
    size = effective_sample_size(ratios[:, -1])
    rows = np.arange(len(ratios))

    def interval(estimated: Callable[[NDArray[np.intp]], float]) -> dict[str, float]:
        left_out = np.array([estimated(np.delete(rows, run)) for run in rows])
        return jackknife(left_out, estimated(rows), max(size - 1, 1.0)).interval().as_dict()

    return {
        "per_decision": interval(lambda rows: per_decision(ratios[rows], trace.rewards[rows])),
        "weighted": interval(lambda rows: weighted_return(ratios[rows], trace.rewards[rows])),
        "doubly_robust": interval(
            lambda rows: doubly_robust(ratios[rows], trace.rewards[rows], trace.taken_value[rows], values[rows])
        ),
        "effective_sample_size": size,
        "behaviour": "logged" if known else "estimated",
        "softness": SOFTNESS,
        "trusted": size >= TRUSTED_SAMPLES,
    }


def estimated_behaviour(trace: Trace, actions: int) -> Array:
    """Estimate the probability [L, T − 1] of each logged action by its frequency where the same action was ``advised``.

    Each legal action counts once more (Laplace), so that none has probability 0. Logged actions −1 get 1. ``actions``
    is the number of actions N.
    """
    counts = np.full((actions, actions), SMOOTHING)
    inside = trace.actions >= 0
    np.add.at(counts, (trace.advised[inside], trace.actions[inside]), 1.0)
    legal = np.ones(trace.actions.shape)  # total count of legal actions under the same advice
    for advised in range(actions):
        rows = trace.advised == advised
        legal[rows] = trace.legal[rows] @ counts[advised]
    taken = counts[trace.advised, np.maximum(trace.actions, 0)]
    return np.where(inside, taken / legal, 1.0)


def cumulative(ratios: Array) -> Array:
    """Return the runs' importance weights [L, T]: 1, then products of decisions' probability ``ratios`` [L, T − 1]."""
    first = np.ones((len(ratios), 1))
    product: Array = np.concatenate([first, np.cumprod(ratios, axis=1)], axis=1)
    return product


def effective_sample_size(weights: Array) -> float:
    """Compute (Σ w)² / Σ w² of the runs' weights w [L], in runs; 0 if all weights are 0."""
    squared = float((weights**2).sum())
    return float(weights.sum() ** 2 / squared) if squared > 0 else 0.0


def per_decision(ratios: Array, rewards: Array) -> float:
    """Estimate the return by per-decision importance sampling: the mean over runs of Σ_t ρ_t · r_t, from cumulative
    ratios and rewards [L, T]. It is unbiased if the behaviour's probabilities are known."""
    return float((ratios * rewards).sum(axis=1).mean())


def normalise_weights(ratios: Array) -> Array:
    """Divide the importance weights ``ratios`` [L, T] of each iteration by their sum over L runs; 0 where it is 0."""
    total = ratios.sum(axis=0)
    shares: Array = np.divide(ratios, total, out=np.zeros_like(ratios), where=total > 0)
    return shares


def weighted_return(ratios: Array, rewards: Array) -> float:
    """Estimate the return by weighted importance sampling: Σ_t Σ_runs w_t · r_t, from cumulative ratios and rewards
    [L, T], weights normalised over runs; biased but consistent."""
    return float((normalise_weights(ratios) * rewards).sum())


def doubly_robust(ratios: Array, rewards: Array, taken: Array, expected: Array) -> float:
    """Estimate the return by weighted doubly robust sampling: consistent if either weights or values are right.

    Args:
        ratios, rewards: cumulative importance weights and rewards of L runs of T iterations, [L, T].
        taken: value of each decision's logged action, [L, T − 1].
        expected: value of each decision's state under the candidate, [L, T − 1].
    """
    weights = normalise_weights(ratios)
    correction = weights[:, 1:] * taken - weights[:, :-1] * expected
    return float((weights * rewards).sum() - correction.sum())


Floats = NDArray[np.float64]
PERCENT = ("%", "percent", "per cent")
CALLED = {"gpu": "GPU", "cpu": "core", "core": "core"}
"""Noun in the name of an hours outcome, by a lower-case part of the resource's unit or name."""


def outcomes_of(spec: Spec) -> tuple[Outcome, ...]:
    """List the O outcomes of a run, in users' units.

    Two per target (share of runs or iterations that miss it, 0…1; by how much on average, in the metric's unit), hours
    per resource, cost (left out if it equals one resource's hours), and the number of changes of allocation.
    """
    targets = [metric for metric in spec.metrics if metric.target is not None]
    missed = [outcome for metric in targets for outcome in _missed_outcomes(metric, spec.weights)]
    reserved = [Outcome(name) for name, _ in hours_of(spec.resources)]
    money = [Outcome("cost", MONEY)] if _has_price(spec) else []
    return (*missed, *reserved, *money, Outcome("changes"))


def _missed_outcomes(metric: Metric, weights: Weights) -> tuple[Outcome, Outcome]:
    # A run's target is a promise, unless missing it is weighted below cost; a set point is never met exactly.
    binding = metric.scope == "run" and metric.goal != "track" and metric.weight * weights.sla >= weights.cost
    if metric.scope == "run" and metric.name == SECONDS and metric.goal == "at_most":
        return Outcome("missed deadlines", SHARE, binding), Outcome("lateness", metric.unit)
    where = "runs" if metric.scope == "run" else "iterations"
    missed = Outcome(f"{where} that miss {metric.name}", SHARE, binding)
    return missed, Outcome(f"{metric.name} missed by", metric.unit)


def hours_of(resources: Sequence[Resource]) -> list[tuple[str, float]]:
    """Return, per resource, the name of its hours, such as “core-hours”, and the number of its units that make one
    whole (100 for %, else 1). The resource's own name precedes a name that occurs twice."""
    results = []
    for resource in resources:
        noun, whole = resource.unit.strip() or resource.name, 1.0
        if noun.lower() in PERCENT:
            noun, whole = resource.name, 100.0
        known = next((called for part, called in CALLED.items() if part in noun.lower()), None)
        results.append((f"{known or noun.removesuffix('s')}-hours", whole))
    names = [name for name, _ in results]
    return [
        (name if names.count(name) == 1 else f"{resource.name} {name}", whole)
        for resource, (name, whole) in zip(resources, results, strict=True)
    ]


def _has_price(spec: Spec) -> bool:
    """Return whether a run's cost is more than the hours of one resource at price 1."""
    return len(spec.resources) > 1 or spec.resources[0].price_per_hour != 1


def outcome_increments(projector: Projector, before: State, after: State) -> Floats:
    """Return the increase of each of the O outcomes of ``outcomes_of`` by one iteration of B runs, [B, O].

    ``before`` and ``after`` are the states around the iteration.
    """
    spec, seconds = projector.layout.spec, projector.layout.seconds
    columns: list[NDArray[Any]] = []
    for i, metric in enumerate(spec.metrics):
        if metric.target is not None:
            columns += _misses(projector, i, after)
    hours = projector.units(after.levels) * after.measured[:, seconds, None] / 3600  # [B, R]
    columns += [own / whole for own, (_, whole) in zip(hours.T, hours_of(spec.resources), strict=True)]
    columns += [(hours * before.prices).sum(axis=1)] if _has_price(spec) else []
    columns.append((after.levels != before.levels).any(axis=1).astype(np.float64))
    return np.stack(columns, axis=1, dtype=np.float64)


def _misses(projector: Projector, i: int, after: State) -> Sequence[NDArray[Any]]:
    """Return whether metric ``i`` misses its target (0 or 1), and the size of the miss in its unit, [B] each.

    A target on a run's sum counts at the run's end; others at each iteration, divided by the number of iterations.
    """
    metric, iterations, target = projector.layout.spec.metrics[i], projector.layout.iterations, after.targets[:, i]
    whole = metric.scope == "run"
    counts = after.iteration >= iterations if whole else np.full(len(target), 1 / iterations)
    value = (after.elapsed if whole else after.measured)[:, i]
    excess = miss(metric.goal, value / target)
    return (excess > 0) * counts, excess * target * counts
