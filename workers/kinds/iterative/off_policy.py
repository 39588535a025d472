"""Off-policy scores, and outcomes of runs."""

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
from app.kinds.iterative.spec import SECONDS, Metric, Resource, Spec
from app.kinds.iterative.state import State, advance, begin, expect
from app.policies.artifact import Artifact
from workers.evaluation.statistics import jackknife, mean_interval

Array = NDArray[np.float64]
FEWEST_RUNS = 2
TRUSTED_SAMPLES = 10.0  # effective runs below which importance sampling says little
SOFTNESS = 0.05  # share of the candidate's steps that is drawn evenly: a greedy policy has no overlap with a log
SMOOTHING = 1.0  # steps of each legal kind that are added where the behaviour's probabilities are estimated


class TooFewRuns(ValueError):
    """There are too few finished runs to score a candidate on; the message says how many are needed."""


@dataclass(frozen=True)
class Trace:
    """L logged runs of T iterations as a learner sees them; decisions are those before iterations 1 … T − 1.

    Attributes:
        actions: taken, [L, T − 1]; −1 where the change was none of the workload's actions.
        chosen: what the candidate would have taken, [L, T − 1].
        legal: which of the N actions were legal, [L, T − 1, N].
        advised: the action with the best outlook, [L, T − 1].
        chance: with which the logged action was taken, [L, T − 1]; not a number where it is not known.
        rewards: of each iteration, [L, T].
        taken_value: outlook of the logged action, [L, T − 1].
        chosen_value: outlook of the candidate's, [L, T − 1].
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
    """Score a candidate on logged runs; those that did not come to their end are left out, and counted.

    Returns:
        `runs`, `incomplete`, `logged` (the return that was had), `replay` {`return`, `advantage`}, `importance`
        {`per_decision`, `weighted`, `doubly_robust`, `effective_sample_size`, `behaviour`, `softness`, `trusted`},
        `agreement` (share of decisions that the candidate would have made alike). Intervals are 95 %.

    Raises:
        TooFewRuns: fewer than two runs came to their end.
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
    """Before iteration `number` of all runs: their state, what they see of it, and what was then reported."""

    number: int
    state: State
    seen: View
    levels: NDArray[np.int16]
    metrics: Array
    features: Array


def _moments(projector: Projector, logs: Sequence[Log]) -> Iterator[_Moment]:
    levels, metrics, features, targets = (
        np.stack([getattr(log, name) for log in logs]) for name in ("levels", "metrics", "features", "targets")
    )
    state = begin(projector, levels[:, 0], targets=targets, features=features[:, 0])
    for t in range(levels.shape[1]):
        yield _Moment(t, state, view(projector, state), levels[:, t], metrics[:, t], features[:, t])
        state = advance(projector, state, levels[:, t], metrics[:, t], features[:, t])


def follow(projector: Projector, artifact: Artifact, logs: Sequence[Log]) -> Trace:
    """The logged runs as they went, and what the candidate would have said at each of their decisions."""
    columns: dict[str, list[Any]] = {name: [] for name in Trace.__dataclass_fields__}
    rows = np.arange(len(logs))
    memory: NDArray[np.float32] | None = None
    for moment in _moments(projector, logs):
        after = advance(projector, moment.state, moment.levels, moment.metrics, moment.features)
        paid = reward(moment.state.weights, terms(projector, moment.state, after))
        columns["rewards"].append(paid)
        if moment.number == 0:
            continue
        seen = moment.seen
        action = actions_of(projector.layout, moment.state.levels, moment.levels)
        decided = decide(Situation(projector, moment.state, seen, memory), artifact)
        chosen, memory = decided.action, decided.memory
        columns["actions"].append(action)
        columns["chosen"].append(chosen)
        columns["legal"].append(seen.mask)
        columns["advised"].append(seen.outlook.argmax(axis=1))
        columns["chance"].append([np.nan if log.chances is None else log.chances[moment.number] for log in logs])
        known = np.where(action >= 0, action, projector.layout.noop)
        columns["taken_value"].append(seen.outlook[rows, known])
        columns["chosen_value"].append(seen.outlook[rows, chosen])
        columns["mean_value"].append(np.where(seen.mask, seen.outlook, 0.0).sum(axis=1) / seen.mask.sum(axis=1))
    return Trace(**{name: np.stack(values, axis=1) for name, values in columns.items()})


def actions_of(layout: Layout, before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.int64]:
    """The action that leads from levels to levels, [B, R] each: [B]; −1 where none does."""
    same = ((after - before)[:, None, :] == layout.deltas[None]).all(axis=2)
    return np.where(same.any(axis=1), same.argmax(axis=1), -1)


def replay(projector: Projector, artifact: Artifact, logs: Sequence[Log]) -> Array:
    """Return of each run, [L], had the candidate decided it; what happened to an iteration happens to it again."""
    total = np.zeros(len(logs))
    ours: State | None = None
    memory: NDArray[np.float32] | None = None
    for moment in _moments(projector, logs):
        expected = expect(projector, moment.state, moment.levels, moment.features)
        measured = moment.metrics.copy()
        seconds = projector.layout.seconds
        measured[:, seconds] = np.maximum(measured[:, seconds] - expected.pause, 1e-3 * measured[:, seconds])
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
    """The importance-sampling estimates of the candidate's return, made soft by `SOFTNESS`."""
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
        "weighted": interval(lambda rows: weighted(ratios[rows], trace.rewards[rows])),
        "doubly_robust": interval(
            lambda rows: doubly_robust(ratios[rows], trace.rewards[rows], trace.taken_value[rows], values[rows])
        ),
        "effective_sample_size": size,
        "behaviour": "logged" if known else "estimated",
        "softness": SOFTNESS,
        "trusted": size >= TRUSTED_SAMPLES,
    }


def estimated_behaviour(trace: Trace, actions: int) -> Array:
    """Probability of each logged action, [L, T − 1], from how often it was taken where the model advised the same.

    Smoothed by one step of each kind that was legal at that decision (Laplace), so that no legal action has probability
    0, and none is spent on actions that could not be taken. It is 1 where no action was taken.
    """
    counts = np.full((actions, actions), SMOOTHING)
    inside = trace.actions >= 0
    np.add.at(counts, (trace.advised[inside], trace.actions[inside]), 1.0)
    legal = np.ones(trace.actions.shape)  # steps of all legal kinds where the same was advised
    for advised in range(actions):
        rows = trace.advised == advised
        legal[rows] = trace.legal[rows] @ counts[advised]
    taken = counts[trace.advised, np.maximum(trace.actions, 0)]
    return np.where(inside, taken / legal, 1.0)


def cumulative(ratios: Array) -> Array:
    """Importance of each run up to each iteration, [L, T], from its decisions' ratios [L, T − 1]; 1 at first."""
    first = np.ones((len(ratios), 1))
    product: Array = np.concatenate([first, np.cumprod(ratios, axis=1)], axis=1)
    return product


def effective_sample_size(weights: Array) -> float:
    """(Σ w)² / Σ w² of the runs' weights [L]: how many equally weighted runs they are worth."""
    squared = float((weights**2).sum())
    return float(weights.sum() ** 2 / squared) if squared > 0 else 0.0


def per_decision(ratios: Array, rewards: Array) -> float:
    """Mean over runs of Σ_t ρ_t · r_t; [L, T] each. Unbiased where the behaviour's probabilities are known."""
    return float((ratios * rewards).sum(axis=1).mean())


def normalised(ratios: Array) -> Array:
    """Each iteration's weights over runs, summing to 1, [L, T]; 0 where no run supports the candidate any more."""
    total = ratios.sum(axis=0)
    shares: Array = np.divide(ratios, total, out=np.zeros_like(ratios), where=total > 0)
    return shares


def weighted(ratios: Array, rewards: Array) -> float:
    """Σ_t Σ_runs w_t · r_t with weights normalised over runs: biased, consistent, and much less noisy."""
    return float((normalised(ratios) * rewards).sum())


def doubly_robust(ratios: Array, rewards: Array, taken: Array, expected: Array) -> float:
    """Weighted doubly robust: right if either the weights or the values are.

    Args:
        ratios, rewards: [L, T].
        taken: value of each decision's logged action, [L, T − 1].
        expected: value of each decision's state under the candidate, [L, T − 1].
    """
    weights = normalised(ratios)
    correction = weights[:, 1:] * taken - weights[:, :-1] * expected
    return float((weights * rewards).sum() - correction.sum())


# What users count of a run of an ``iterative`` workload: targets missed and by how much, hours, money, changes.


Floats = NDArray[np.float64]
PERCENT = ("%", "percent", "per cent")
CALLED = {"gpu": "GPU", "cpu": "core", "core": "core"}
"""By part of a resource's unit or name, in small letters."""


def outcomes_of(spec: Spec) -> tuple[Outcome, ...]:
    """The quantities, O of them: of every target two, of every resource one, money where it is not just that, changes.

    How much a target is missed by is a mean over all runs (or iterations), those that meet it counting 0.
    """
    missed = [outcome for metric in spec.metrics if metric.target is not None for outcome in _missed(metric)]
    reserved = [Outcome(name) for name, _ in hours_of(spec.resources)]
    money = [Outcome("cost", MONEY)] if _priced(spec) else []
    return (*missed, *reserved, *money, Outcome("changes"))


def _missed(metric: Metric) -> tuple[Outcome, Outcome]:
    if metric.scope == "run" and metric.name == SECONDS and metric.goal == "at_most":
        return Outcome("runs late", SHARE), Outcome("late by", metric.unit)
    where = "runs" if metric.scope == "run" else "iterations"
    return Outcome(f"{where} that miss {metric.name}", SHARE), Outcome(f"{metric.name} missed by", metric.unit)


def hours_of(resources: Sequence[Resource]) -> list[tuple[str, float]]:
    """What the hours of each resource are called, and how many of its units make one: “core-hours”, 100 per cent.

    Where two would be called the same, their own names stand in front.
    """
    found = []
    for resource in resources:
        noun, whole = resource.unit.strip() or resource.name, 1.0
        if noun.lower() in PERCENT:
            noun, whole = resource.name, 100.0
        known = next((called for part, called in CALLED.items() if part in noun.lower()), None)
        found.append((f"{known or noun.removesuffix('s')}-hours", whole))
    names = [name for name, _ in found]
    return [
        (name if names.count(name) == 1 else f"{resource.name} {name}", whole)
        for resource, (name, whole) in zip(resources, found, strict=True)
    ]


def _priced(spec: Spec) -> bool:
    """Whether what a run costs is more than the hours of one resource."""
    return len(spec.resources) > 1 or spec.resources[0].price_per_hour != 1


def counted(projector: Projector, before: State, after: State) -> Floats:
    """What an iteration adds to each outcome of its run, [B, O]."""
    spec, seconds = projector.layout.spec, projector.layout.seconds
    columns: list[NDArray[Any]] = []
    for i, metric in enumerate(spec.metrics):
        if metric.target is not None:
            columns += _misses(projector, i, after)
    hours = projector.units(after.levels) * after.measured[:, seconds, None] / 3600  # [B, R]
    columns += [own / whole for own, (_, whole) in zip(hours.T, hours_of(spec.resources), strict=True)]
    columns += [(hours * before.prices).sum(axis=1)] if _priced(spec) else []
    columns.append((after.levels != before.levels).any(axis=1).astype(np.float64))
    return np.stack(columns, axis=1, dtype=np.float64)


def _misses(projector: Projector, i: int, after: State) -> Sequence[NDArray[Any]]:
    """Whether a metric misses its target, and by how much: at the end of a run, or of each iteration its share."""
    metric, iterations, target = projector.layout.spec.metrics[i], projector.layout.iterations, after.targets[:, i]
    whole = metric.scope == "run"
    counts = after.iteration >= iterations if whole else np.full(len(target), 1 / iterations)
    value = (after.elapsed if whole else after.measured)[:, i]
    excess = miss(metric.goal, value / target)
    return (excess > 0) * counts, excess * target * counts
