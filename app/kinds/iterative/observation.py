"""What a policy sees of a run: the observation, the legal actions, and the outlook of each."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.projector import Projector, over_columns
from app.kinds.iterative.state import State

Array = NDArray[Any]
RETURN_SCALE = 100.0  # returns are of order 0.1 and differ by thousandths: learners see them in hundredths
LOG_LIMIT, EFFECT_LIMIT, ADVICE_LIMIT = 3.0, 6.0, 20.0


class View(NamedTuple):
    """Everything that is derived from a state for deciding. N actions, D observation entries.

    Attributes:
        observation: of order 1, [B, D].
        mask: legal actions, [B, N].
        outlook: expected return-to-go of each action if its allocation is then held, [B, N]; -inf where illegal.
        allocation: row of the allocation grid that each action leads to, [B, N].
    """

    observation: Array
    mask: NDArray[Any]
    outlook: Array
    allocation: NDArray[Any]


def size(layout: Layout) -> int:
    """Length D of an observation."""
    return len(names(layout))


def names(layout: Layout) -> list[str]:
    """What each entry of an observation is."""
    targeted = [m for m in layout.spec.metrics if m.target is not None]
    return [
        *(f"allocation.{name}" for name in layout.resources),
        *(f"measured.{m.name}" for m in targeted),
        *(f"left.{m.name}" for m in targeted if m.scope == "run"),
        *(f"effect.{name}" for name in layout.metrics),
        "progress",
        *(f"feature.{name}" for name in layout.features),
        *(f"target.{m.name}" for m in targeted),
        "weight.sla",
        "weight.cost",
        "weight.change",
        *(f"price.{name}" for name in layout.resources),
        *(f"advice.{action}" for action in range(len(layout.deltas))),
    ]


def advice_slice(layout: Layout) -> slice:
    """The part of an observation that holds one number per action: its outlook against the best, × ``RETURN_SCALE``."""
    return slice(size(layout) - len(layout.deltas), size(layout))


def mask(layout: Layout, levels: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Actions that stay within the bounds, [B, N], from ``levels`` [B, R]."""
    legal = np.ones((len(layout.deltas), len(levels)), np.bool_)
    for resource, count in enumerate(layout.levels):
        after = layout.deltas[:, resource, None] + levels[None, :, resource]
        legal &= (after >= 0) & (after < count)
    return legal.T


def view(projector: Projector, state: State) -> View:
    """Observation, mask and outlook in one go: they share most of their work."""
    legal = mask(projector.layout, state.levels)
    options = reachable(projector, state, legal)
    expected = outlook(projector, state, options).T
    expected[~legal] = -np.inf
    return View(_observation(projector, state, expected), legal, expected, options.allocation.T)


def observe(projector: Projector, state: State) -> Array:
    """The observation, [B, D]; ``names`` says what is where."""
    return view(projector, state).observation


class Options(NamedTuple):
    """K allocations to choose from; [K, B] each, or [K, 1] where all runs share it: NumPy is fast along long rows.

    Attributes:
        allocation: row of the allocation grid.
        pause: seconds that the change takes.
        change: share of the run's largest possible movement.
        rate: money per second.
    """

    allocation: NDArray[np.integer]
    pause: Array
    change: Array
    rate: Array


def reachable(projector: Projector, state: State, legal: NDArray[np.bool_]) -> Options:
    """What each action leads to; an illegal one stays where it is, and its numbers mean nothing."""
    layout = projector.layout
    steps = (layout.deltas @ layout.strides).astype(np.intp)[:, None]
    moved = np.abs(layout.deltas).sum(axis=1).astype(projector.dtype)[:, None]
    worth = (state.prices * projector.hours_per_second).T  # [R, B]
    now = over_columns((projector.minima + projector.steps * state.levels) * worth.T)
    return Options(
        allocation=layout.index(state.levels) + steps * legal.T,
        pause=((layout.deltas != 0) @ projector.change_seconds)[:, None],
        change=moved / projector.dtype.type(layout.largest_action * layout.iterations),
        rate=now + (layout.deltas * projector.steps).astype(projector.dtype) @ worth,
    )


def everywhere(projector: Projector, state: State) -> Options:
    """The whole allocation grid as options, [A, B], as if it could be reached in one step."""
    layout, grid = projector.layout, projector.grid_levels
    moved = grid[:, None, :] - state.levels
    started = state.iteration > 0
    values = projector.minima + projector.steps * grid
    return Options(
        allocation=np.broadcast_to(np.arange(len(grid))[:, None], moved.shape[:2]),
        pause=((moved != 0) @ projector.change_seconds) * started,
        change=np.abs(moved).sum(axis=2) * started / (layout.largest_action * layout.iterations),
        rate=values @ state.prices.T * projector.hours_per_second,
    )


def outlook(projector: Projector, state: State, options: Options) -> Array:
    """Expected return-to-go, [K, B], of moving to each option now and holding it to the end.

    It is the objective of model-predictive control over constant continuations, with the run effect's posterior
    integrated out. A miss is expected under a normal approximation of the projected metric.
    """
    layout = projector.layout
    cell = projector.cell(state.features)
    seconds = projector.remaining(layout.seconds, options.allocation, cell, state.iteration)
    seconds *= _factor(state, layout.seconds)
    seconds += options.pause
    w = state.weights
    total = seconds * options.rate
    total *= w[:, 1] / reference_cost(projector, state)
    total += w[:, 2] * options.change
    for index, metric in enumerate(layout.spec.metrics):
        if metric.target is not None and metric.weight > 0:
            total += w[:, 0] * _expected(projector, state, options, cell, index, seconds)
    return np.negative(total, out=total)


def reference_cost(projector: Projector, state: State) -> Array:
    """What the model expects the whole run to cost at the largest allocation, [B]; 1 where nothing costs anything."""
    money = state.prices @ projector.largest * projector.hours_per_second
    money = money * projector.whole_run(projector.cell(state.features))
    return np.where(money > 0, money, projector.dtype.type(1))


def _factor(state: State, metric: int) -> Array:
    """Mean of the run effect under its log-normal posterior, [B]."""
    factor: Array = np.exp(state.effect[:, metric] + state.variance[:, metric] / 2)
    return factor


def _expected(
    projector: Projector, state: State, options: Options, cell: NDArray[np.integer], index: int, seconds: Array
) -> Array:
    """Weighted relative miss that is expected of one metric, [K, B]."""
    layout = projector.layout
    metric = layout.spec.metrics[index]
    left = np.maximum(layout.iterations - state.iteration, 1).astype(projector.dtype)
    worth = 1 / state.targets[:, index]
    uncertain = state.variance[:, index] + projector.drift_variance[index] * left / 3
    noise = projector.noise_variance[index]
    if metric.scope == "run":
        rest = seconds
        if index != layout.seconds:
            rest = projector.remaining(index, options.allocation, cell, state.iteration) * _factor(state, index)
        rest = rest * worth
        excess = rest + (state.elapsed[:, index] * worth - 1)
        return _miss(metric.goal, excess, rest * np.sqrt(uncertain + noise / left)) * projector.dtype.type(
            metric.weight
        )
    logs = projector.remaining_log(index, options.allocation, cell, state.iteration) / left
    typical = np.exp(logs + state.effect[:, index]) * worth
    missed = _miss(metric.goal, typical - 1, typical * np.sqrt(uncertain + noise))
    return missed * (left * projector.dtype.type(metric.weight / layout.iterations))


def _miss(goal: str, excess: Array, spread: Array) -> Array:
    if goal == "at_most":
        return expected_positive(excess, spread)
    if goal == "at_least":
        return expected_positive(-excess, spread)
    return expected_positive(excess, spread) + expected_positive(-excess, spread)


_TANH = (math.sqrt(2 / math.pi), 0.044715 * math.sqrt(2 / math.pi))


def expected_positive(mean: Array, spread: Array) -> Array:
    """E[max(0, X)] for X normal with ``mean`` and ``spread`` of one shape; its cdf by the tanh approximation."""
    u = mean / np.maximum(spread, 1e-9)
    np.minimum(np.maximum(u, -8.0, out=u), 8.0, out=u)
    squared = u * u
    density = np.exp(squared * -0.5)
    density *= 1 / math.sqrt(2 * math.pi)
    squared *= _TANH[1]
    squared += _TANH[0]
    squared *= u
    below = np.tanh(squared, out=squared)
    below += 1
    below *= 0.5
    density *= spread
    below *= mean
    density += below
    return np.maximum(density, 0, out=density)


def _observation(projector: Projector, state: State, expected: Array) -> Array:
    layout = projector.layout
    out = np.empty((len(state.iteration), layout.observation_size), projector.dtype)
    column = 0
    for values in _entries(projector, state):
        width = values.shape[1]
        out[:, column : column + width] = values
        column += width
    advice = expected.T - expected.max(axis=1)
    advice *= RETURN_SCALE
    out[:, column:] = np.maximum(advice, -ADVICE_LIMIT, out=advice).T
    return out


def _entries(projector: Projector, state: State) -> Iterator[Array]:
    """The entries before the advice, each [B, width], in the order of ``names``."""
    layout, metrics = projector.layout, projector.layout.spec.metrics
    targeted = [i for i, m in enumerate(metrics) if m.target is not None]
    yield state.levels * projector.level_scale
    for i in targeted:
        scale = layout.iterations if metrics[i].scope == "run" else 1
        measured = state.measured[:, i, None]
        yield np.where(np.isnan(measured), 0, _log(measured * scale / state.targets[:, i, None]))
    for i in targeted:
        if metrics[i].scope == "run":
            yield _left(projector, state, i)
    yield np.minimum(np.maximum(state.effect / projector.effect_scale, -EFFECT_LIMIT), EFFECT_LIMIT)
    yield state.iteration[:, None] / projector.dtype.type(layout.iterations)
    for i, feature in enumerate(layout.spec.features):
        yield (state.features[:, i, None] - feature.minimum) / (feature.maximum - feature.minimum)
    for i in targeted:
        yield _log(state.targets[:, i, None] / layout.targets[i])
    yield state.weights
    priced = state.prices * projector.largest
    yield priced / np.maximum(over_columns(priced), 1e-12)[:, None]


def _left(projector: Projector, state: State, metric: int) -> Array:
    """Log of what is left of a run's target over what the model projects at the present allocation, [B, 1]."""
    here = projector.layout.index(state.levels)[None]
    rest = projector.remaining(metric, here, projector.cell(state.features), state.iteration)[0]
    left = state.targets[:, metric] - state.elapsed[:, metric]
    return _log(np.maximum(left, 1e-6) / np.maximum(rest * _factor(state, metric), 1e-9))[:, None]


def _log(ratio: Array) -> Array:
    limit = math.exp(LOG_LIMIT)
    result: Array = np.log(np.minimum(np.maximum(ratio, 1 / limit), limit))
    return result
