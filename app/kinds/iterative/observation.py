"""Observations of policies of kind `iterative`, expected return of actions, and rewards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.announced import Announced, Remaining, announced_iterations
from app.kinds.iterative.layout import AHEAD
from app.kinds.iterative.moves import GridPosition, Moves
from app.kinds.iterative.projection import LOG_LIMIT, over_columns
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, aimed, by_member, log_factor, member_point, member_weights, noise_scale
from app.policies.base import RETURN_SCALE

# Preferences: quantities derived from targets, weights and prices, constant while these are.


Array = NDArray[Any]


class Preferences(NamedTuple):
    """Quantities derived from targets, weights, prices and constant features of B runs: M metrics, T with a target.

    Attributes:
        inverse_targets: 1/target, [M, B]; NaN without a target.
        pace: inverse of the target per iteration, 1/target or iterations/target, [T, B].
        reference: result of ``reference_cost``, money, [B].
        weights: weights of the terms sla, cost and change, [3, B]; that of cost per unit of money.
        money: prices per unit and second, [R, B].
        entries: entries of the observation for targets, weights and prices, [·, B].
    """

    inverse_targets: Array
    pace: Array
    reference: Array
    weights: Array
    money: Array
    entries: Array


def preferences_of(projector: Projector, state: State) -> Preferences:
    """Compute the preferences of the B runs in ``state``."""
    reference = reference_cost(projector, state)
    weights = state.weights.T.copy()
    weights[1] /= reference
    inverse_targets = 1 / state.targets.T
    return Preferences(
        inverse_targets=inverse_targets,
        pace=inverse_targets[projector.targeted] * projector.per_iteration,
        reference=reference,
        weights=weights,
        money=state.prices.T * projector.hours_per_second,
        entries=_entries(projector, state),
    )


def reference_cost(projector: Projector, state: State) -> Array:
    """Return the expected cost, in the prices' currency, of each whole run at the largest allocation, [B]; 1 if all
    prices are 0."""
    money = state.prices @ projector.largest * projector.hours_per_second
    money = money * projector.ahead.whole_run(projector.ahead.point(state.features))
    return np.where(money > 0, money, projector.dtype.type(1))


def _entries(projector: Projector, state: State) -> Array:
    priced = (state.prices * projector.largest).T
    parts = [
        log_within(state.targets.T[projector.targeted] * projector.usual_worth),
        state.weights.T,
        priced / np.maximum(priced.sum(axis=0), 1e-12),
    ]
    return np.concatenate(parts)


def log_within(ratio: Array) -> Array:
    """Overwrite ``ratio`` with its natural logarithm, clipped to ± ``LOG_LIMIT``, elementwise, and return it."""
    limit = math.exp(LOG_LIMIT)
    np.minimum(np.maximum(ratio, 1 / limit, out=ratio), limit, out=ratio)
    return np.log(ratio, out=ratio)


# View of a run: observation, legal actions, and expected return of each.


EFFECT_LIMIT, ADVICE_LIMIT = 6.0, 20.0


class View(NamedTuple):
    """Quantities derived from a state for the decisions of B runs; N actions, D observation entries.

    Attributes:
        observation: numbers of order 1, [B, D].
        mask: legal actions, [B, N].
        outlook: expected return-to-go of each action if its allocation is then held, for targets that are tightened if
            the spec expects a ``pace_shift`` (``state.aimed``), [B, N]; −∞ if illegal.
    """

    observation: Array
    mask: NDArray[Any]
    outlook: Array


def view(projector: Projector, state: State, given: Preferences | None = None) -> View:
    """Compute observation, mask and outlook of B runs together, as they share most work.

    ``given``: cached preferences of the runs; None: compute them."""
    given = preferences_of(projector, state) if given is None else given
    ahead, upcoming = projector.ahead, announced_iterations(projector, state)
    position = GridPosition(
        ahead.layout.index(state.levels), ahead.point(state.features), state.iteration, state.levels
    )
    moves = ahead.moves
    barrier = moves.barrier(position)
    legal = barrier == 0
    projection = _projection(ahead, state, _after_actions(moves, position, upcoming))
    rate = moves.rate(state.levels, given.money * given.weights[1])
    options = Options(position.here, moves.pause, moves.change, rate)

    def expect(valued: Preferences, total: Array) -> Array:
        if ahead.believed is None:
            return _charge(ahead, state, valued, projection, options, total)
        return _outlook_by_member(projector, ahead.believed, state, valued, options, upcoming, position) + total

    aims, outlook = aimed(projector, state), None
    if aims is not state:
        outlook = expect(given._replace(inverse_targets=1 / aims.targets.T), barrier.copy())
    expected = expect(given, barrier)  # what agents observe is for the run's own targets
    coming = ahead.coming(position.point, state.iteration)
    if upcoming is not None:
        coming = upcoming.coming(coming, ahead.average_length(position.point))
    observation = _observation(projector, state, given, projection, coming, expected)
    return View(observation.T, legal.T, (expected if outlook is None else outlook).T)


class Options(NamedTuple):
    """K allocations for each of B runs to choose from, [K, B] each, or [K, 1] if common to all runs.

    Attributes:
        allocation: row of the allocation grid.
        pause: seconds that the change takes.
        change: share (0 to 1) of the largest possible movement in a run.
        rate: money per second.
    """

    allocation: NDArray[np.integer]
    pause: Array
    change: Array
    rate: Array


def reachable(projector: Projector, state: State, legal: NDArray[np.bool_]) -> Options:
    """Return the options that N actions lead to, [N, B]; without meaning where ``legal`` [B, N] is False."""
    moves, layout = projector.moves, projector.layout
    return Options(
        allocation=layout.index(state.levels) + moves.steps * legal.T,
        pause=moves.pause,
        change=moves.change,
        rate=moves.rate(state.levels, (state.prices * projector.hours_per_second).T),
    )


def everywhere(projector: Projector, state: State) -> Options:
    """Return all A allocations of the grid as options of B runs, [A, B], as if each were reachable in one step."""
    grid = projector.grid_levels
    moved = grid[:, None, :] - state.levels
    started = state.iteration > 0
    return Options(
        allocation=np.broadcast_to(np.arange(len(grid))[:, None], moved.shape[:2]),
        pause=((moved != 0) @ projector.change_seconds) * started,
        change=projector.share_moved(np.abs(moved).sum(axis=2) * started),
        rate=projector.units(grid) @ state.prices.T * projector.hours_per_second,
    )


def outlook(projector: Projector, state: State, options: Options) -> Array:
    """Return the expected return-to-go of moving to each of K options now and holding it to the end, [K, B].

    It is the objective of model-predictive control over constant continuations, with the posterior of the run effect
    integrated out. Misses are expected under a normal approximation of the projected metric."""
    given, ahead, coming = preferences_of(projector, state), projector.ahead, announced_iterations(projector, state)
    options = options._replace(rate=options.rate * given.weights[1])
    if ahead.believed is not None:
        return _outlook_by_member(projector, ahead.believed, state, given, options, coming)
    total = np.zeros(options.allocation.shape, projector.dtype)
    point = ahead.point(state.features)
    projection = _projection(ahead, state, Remaining(ahead, options.allocation, point, state.iteration, coming).sums)
    return _charge(ahead, state, given, projection, options, total)


def _outlook_by_member(
    projector: Projector,
    members: Projector,
    state: State,
    given: Preferences,
    options: Options,
    told: Announced | None,
    position: GridPosition | None = None,
) -> Array:
    """Return the expected return-to-go of N options, [N, B], averaged over ``members``, each with its own run effect.

    ``told``: announced iterations. Options are those of the actions from ``position``, or without one those in
    ``options.allocation``."""
    count, batch = projector.members, len(state.iteration)
    apart = by_member(state, count)
    point = member_point(projector.ahead, projector.ahead.point(state.features))
    if told is not None and projector.believed is not None:
        told = told.by_member(projector.believed)
    targets, weights = (np.repeat(part, count, axis=1) for part in (given.inverse_targets, given.weights))
    preferences = given._replace(inverse_targets=targets, weights=weights)
    if position is not None:
        rows = GridPosition(np.repeat(position.here, count), point, apart.iteration, apart.levels)
        projection = _projection(members, apart, _after_actions(members.moves, rows, told))
    else:
        allocation = np.repeat(options.allocation, count, axis=1)
        remaining = Remaining(members, allocation, point, apart.iteration, told)
        projection = _projection(members, apart, remaining.sums)
    pause, change = (part if part.shape[1] == 1 else np.repeat(part, count, axis=1) for part in options[1:3])
    apart_options = Options(options.allocation, pause, change, np.repeat(options.rate, count, axis=1))
    total = np.zeros((len(options.rate), batch * count), projector.dtype)
    total = _charge(members, apart, preferences, projection, apart_options, total)
    expected: Array = np.einsum("nbk,bk->nb", total.reshape(len(total), batch, count), member_weights(state))
    return expected


def _after_actions(moves: Moves, position: GridPosition, told: Announced | None) -> Callable[[int, bool], Array]:
    if told is None:
        return lambda metric, logs: moves.remaining(metric, position, logs=logs)
    after, goals = position._replace(iteration=told.following), moves.goals(position)
    return lambda metric, logs: moves.remaining(metric, after, logs=logs) + told.sums(metric, goals, logs=logs)


class _Projection(NamedTuple):
    """Projection of B runs with each of K allocations held to the end.

    Attributes:
        iterations_left: number of remaining iterations, at least 1, [B].
        rests: remaining sums of metrics with a target for the run, and of seconds, [K, B] by metric.
        logs: mean natural logarithm over remaining iterations, for targets per iteration, [K, B] by metric.
    """

    iterations_left: Array
    rests: dict[int, Array]
    logs: dict[int, Array]


def _projection(projector: Projector, state: State, remaining: Callable[[int, bool], Array]) -> _Projection:
    layout = projector.layout
    projection = _Projection(np.maximum(layout.iterations - state.iteration, 1).astype(projector.dtype), {}, {})
    for index, metric in enumerate(layout.spec.metrics):
        if index == layout.seconds or (metric.target is not None and metric.scope == "run"):
            projection.rests[index] = remaining(index, False)
            projection.rests[index] *= np.exp(log_factor(projector, state, index))
        if metric.target is not None and metric.scope == "iteration":
            projection.logs[index] = remaining(index, True)
            projection.logs[index] /= projection.iterations_left
            projection.logs[index] += state.effect[:, index]
    return projection


def _charge(
    projector: Projector, state: State, given: Preferences, projection: _Projection, options: Options, total: Array
) -> Array:
    """Subtract weighted cost, change and expected misses from ``total`` [K, B] in place, and return it.

    ``options.rate`` is in units of reward per second."""
    layout = projector.layout
    seconds = projection.rests[layout.seconds] + options.pause
    total -= seconds * options.rate
    total -= given.weights[2] * options.change
    own = noise_scale(projector, state).T if projector.table.noise_weight else None
    for index, metric in enumerate(layout.spec.metrics):
        if metric.target is None or metric.weight == 0:
            continue
        uncertain = state.variance[:, index] + projector.drift_variance[index] * (projection.iterations_left / 3)
        if metric.scope == "run":
            rest = seconds if index == layout.seconds else projection.rests[index]
            size = rest * given.inverse_targets[index]
            offset = state.elapsed[:, index] * given.inverse_targets[index] - 1
            noise = projector.rest_noise(index, state.iteration)
            uncertain += noise if own is None else noise * own[index]
            weight = given.weights[0] * projector.dtype.type(metric.weight)
        else:
            size = np.exp(projection.logs[index]) * given.inverse_targets[index]
            offset = projector.dtype.type(-1)
            noise = projector.noise_variance[index]
            uncertain += noise if own is None else noise * own[index]
            weight = (
                given.weights[0] * projection.iterations_left * projector.dtype.type(metric.weight / layout.iterations)
            )
        missed = _miss(metric.goal, size + offset, size * (np.sqrt(uncertain) * MEAN_DEVIATION))
        missed *= weight
        total -= missed
    return total


def _miss(goal: str, excess: Array, deviation: Array) -> Array:
    """Return the expected relative miss, of the arguments' shape, if the signed excess is normal with mean ``excess``
    and mean absolute deviation ``deviation``."""
    size = expected_size(excess, deviation)
    if goal == "track":
        return size
    if goal == "at_most":
        size += excess
    else:
        size -= excess
    size *= 0.5
    return size


MEAN_DEVIATION = math.sqrt(2 / math.pi)  # mean absolute over standard deviation of a normal
_BUMP = (1.252056 * MEAN_DEVIATION, 0.291269 * MEAN_DEVIATION**2, 0.022768 * MEAN_DEVIATION**3)


def expected_size(mean: Array, deviation: Array) -> Array:
    """Return E|X| for normal X with ``mean`` and mean absolute deviation ``deviation``, elementwise.

    It is |mean| + deviation · h(|mean|/deviation) with h(v) = exp(−a·v − b·v² − c·v³), fitted to the exact value with
    an error below 0.00007."""
    size = np.abs(mean)
    v = size / (deviation + 1e-6)  # a floor without a branch
    decay = v * -_BUMP[2]
    decay -= _BUMP[1]
    decay *= v
    decay -= _BUMP[0]
    decay *= v
    np.exp(decay, out=decay)
    decay *= deviation
    size += decay
    return size


def _observation(
    projector: Projector, state: State, given: Preferences, projection: _Projection, coming: Array, expected: Array
) -> Array:
    layout, dtype = projector.layout, projector.dtype
    out = np.empty_like(given.reference, dtype, shape=(layout.observation_size, len(state.iteration)))
    resources, metrics, targeted = len(layout.resources), len(layout.metrics), len(projector.targeted)
    np.multiply(state.levels.T, projector.level_scale, out=out[:resources])
    row = resources + targeted
    np.multiply(state.measured.T[projector.targeted], given.pace, out=out[resources:row])
    for index in projector.targeted:
        if layout.spec.metrics[index].scope == "run":
            out[row] = _remaining_ratio(projector, state, index, projection.rests[index])
            row += 1
    ratios = log_within(out[resources:row])
    ratios[np.isnan(ratios)] = 0  # before the first report
    effect = np.multiply(state.effect.T, projector.effect_worth, out=out[row : row + metrics])
    np.minimum(np.maximum(effect, -EFFECT_LIMIT, out=effect), EFFECT_LIMIT, out=effect)
    row += metrics
    np.multiply(state.iteration, dtype.type(1 / layout.iterations), out=out[row], casting="same_kind")
    first = row + 1 + len(layout.features)
    if layout.features:
        np.divide((state.features - projector.feature_low).T, projector.feature_span[:, None], out=out[row + 1 : first])
    last = first + len(given.entries)
    out[first:last] = given.entries
    out[last : last + 2 * AHEAD] = coming
    last += 2 * AHEAD
    advice = np.subtract(expected, expected.max(axis=0), out=out[last:])
    advice *= RETURN_SCALE
    np.maximum(advice, np.full(advice.shape[1], -ADVICE_LIMIT, dtype), out=advice)  # faster than with a scalar
    return out


def _remaining_ratio(projector: Projector, state: State, metric: int, rests: Array) -> Array:
    left = state.targets[:, metric] - state.elapsed[:, metric]
    return np.maximum(left, 1e-6) / np.maximum(rests[projector.layout.noop], 1e-9)


# Reward: three terms, each of order 1 over a whole run, reported separately.


TERMS = ("sla", "cost", "change")


def terms(projector: Projector, before: State, after: State, given: Preferences | None = None) -> Array:
    """Return the three terms of one iteration's reward for B runs, [B, 3], without unit; summed over a run they are

    - sla: Σ over metrics of weight · relative miss; mean over iterations, or once at the end for a run's target,
    - cost: money over the model's expected cost of the run at the largest allocation,
    - change: levels changed over the most possible.

    ``given``: cached preferences of the runs."""
    reference = reference_cost(projector, before) if given is None else given.reference
    out = np.empty_like(after.cost, projector.dtype, shape=(3, len(after.iteration)))
    _misses(projector, after, out[0])
    np.divide(after.cost - before.cost, reference, out=out[1])
    moved = over_columns(np.abs(after.levels - before.levels)) * (before.iteration > 0)
    out[2] = projector.share_moved(moved)
    return out.T


def reward(weights: Array, values: Array) -> Array:
    """Return the reward −Σ weight · term of each of B runs, [B], from ``weights`` and terms ``values``, [B, 3] each."""
    paid: Array = weights[:, 0] * values[:, 0]
    paid += weights[:, 1] * values[:, 1]
    paid += weights[:, 2] * values[:, 2]
    return np.negative(paid, out=paid)


def potential(view: View) -> Array:
    """Return the best outlook over the actions of each of B runs, [B], an estimate of its return-to-go.

    Adding its differences to the reward keeps the optimum (potential-based shaping: Ng, Harada and Russell, 1999) and
    reduces the variance that learners see."""
    best: Array = view.outlook.max(axis=1)
    return best


def miss(goal: str, ratio: Array) -> Array:
    """Return the relative miss, 0 if the target is met, for ``ratio`` measured/target, elementwise.

    ``goal`` is "at_most", "at_least" or "track" (a set point)."""
    excess = ratio - 1
    if goal == "track":
        return np.abs(excess)
    return np.maximum(excess if goal == "at_most" else -excess, 0)


def _misses(projector: Projector, after: State, total: Array) -> None:
    """Write the sum of weighted relative misses that are due at this iteration into ``total`` [B]."""
    iterations = projector.layout.iterations
    total[:] = 0
    ended = after.iteration >= iterations
    for i, metric in enumerate(projector.layout.spec.metrics):
        if metric.target is None:
            continue
        if metric.scope == "iteration":
            ratio = after.measured[:, i] / after.targets[:, i]
            total += miss(metric.goal, ratio) * (metric.weight / iterations)
        else:
            ratio = after.elapsed[:, i] / after.targets[:, i]
            total += miss(metric.goal, ratio) * (ended * projector.dtype.type(metric.weight))
