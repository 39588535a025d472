"""A run's state: what its reports so far tell, as a structure of arrays with leading dimension B."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.projection_tables import over_columns
from app.kinds.iterative.projector import Projector

Array = NDArray[Any]
Levels = NDArray[Any]
SURPRISE = 4.0  # standard deviations of an innovation that a constant run effect can't explain


class State(NamedTuple):
    """B runs. R resources, M metrics, F features.

    Attributes:
        iteration: number of reports so far = the iteration that is decided next, [B].
        levels: the last reported allocation (before any report: the initial one), [B, R].
        elapsed: sum of each metric over the run so far, [B, M].
        effect: posterior mean of the log run effect, [B, M].
        variance: its posterior variance, [B, M].
        measured: the last report's metrics, [B, M]; not a number before the first.
        features: the last report's features, [B, F].
        cost: money spent so far, in the price's currency, [B].
        targets: [B, M]; not a number where a metric has none.
        weights: of the reward's terms sla, cost, change, [B, 3].
        prices: per unit and hour, [B, R].
    """

    iteration: Array
    levels: Levels
    elapsed: Array
    effect: Array
    variance: Array
    measured: Array
    features: Array
    cost: Array
    targets: Array
    weights: Array
    prices: Array


def begin(
    projector: Projector,
    levels: Levels,
    *,
    targets: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    prices: ArrayLike | None = None,
    features: ArrayLike | None = None,
) -> State:
    """Runs that have reported nothing yet, at the allocations ``levels`` [B, R]; the rest defaults to the spec's."""
    layout, dtype = projector.layout, projector.dtype
    batch, metrics = len(levels), len(layout.metrics)

    def rows(values: ArrayLike | None, default: ArrayLike) -> Array:
        given = np.asarray(default if values is None else values, dtype)
        return np.array(np.broadcast_to(given, (batch, given.shape[-1])))

    middle = [(f.minimum + f.maximum) / 2 for f in layout.spec.features]
    return State(
        iteration=np.zeros(batch, np.int32),
        levels=np.array(levels, np.int16),  # with float32 it stays float32
        elapsed=np.zeros((batch, metrics), dtype),
        effect=np.zeros((batch, metrics), dtype),
        variance=rows(None, projector.effect_variance),
        measured=np.full((batch, metrics), np.nan, dtype),
        features=rows(features, middle),
        cost=np.zeros(batch, dtype),
        targets=rows(targets, layout.targets),
        weights=rows(weights, layout.weights),
        prices=rows(prices, layout.prices),
    )


class Expected(NamedTuple):
    """What the model expects of one iteration: logs of its metrics, [B, M], and seconds that changes add, [B]."""

    logs: Array
    pause: Array


def expect(projector: Projector, state: State, levels: Levels, features: Array) -> Expected:
    """What is to be expected of the next iteration at ``levels`` [B, R], but for the run effect."""
    logs = projector.log_mean(projector.layout.index(levels), projector.cell(features), state.iteration)
    pause = over_columns((levels != state.levels) * projector.change_seconds)
    return Expected(logs, pause * (state.iteration > 0))


def advance(
    projector: Projector,
    state: State,
    levels: Levels,
    metrics: Array,
    features: Array,
    expected: Expected | None = None,
) -> State:
    """The state after a report: ``levels`` [B, R] used, ``metrics`` [B, M] measured, under ``features`` [B, F].

    The log run effect follows a random walk seen through noise (a local level model); its posterior is normal, and a
    Kalman step updates it. An innovation beyond ``SURPRISE`` standard deviations reopens the posterior, so that a
    disturbance is followed at once instead of being averaged away. ``expected`` spares computing it again.
    """
    logs, pause = expect(projector, state, levels, features) if expected is None else expected
    seconds = metrics[:, projector.layout.seconds]
    ratio = np.log(_without_change(metrics, pause, projector.layout.seconds)) - logs
    effect, variance = filtered(projector, state.effect, state.variance, ratio)
    return state._replace(
        iteration=state.iteration + 1,
        levels=levels,
        elapsed=state.elapsed + metrics,
        effect=effect,
        variance=variance,
        measured=metrics,
        features=features,
        cost=state.cost + spent(projector, state.prices, levels, seconds),
    )


def filtered(projector: Projector, effect: Array, variance: Array, ratio: Array) -> tuple[Array, Array]:
    """Posterior mean and variance of the log run effect after log-ratios measured/predicted ``ratio``, [B, M] each."""
    noise = projector.noise_variance
    prior = variance + projector.drift_variance
    innovation = ratio - effect
    squared = innovation * innovation
    np.copyto(prior, squared, where=squared > SURPRISE**2 * (prior + noise))
    gain = prior / (prior + noise)
    innovation *= gain
    gain *= prior
    return innovation + effect, np.subtract(prior, gain, out=prior)


def spent(projector: Projector, prices: Array, levels: Levels, seconds: Array) -> Array:
    """Money for holding ``levels`` [B, R] over ``seconds`` [B] at ``prices`` [B, R]."""
    rate: Array = over_columns(projector.units(levels) * prices)
    return rate * seconds * projector.hours_per_second


def _without_change(metrics: Array, change_seconds: Array, seconds: int) -> Array:
    """The metrics with a change's cost taken off the iteration's seconds, of which at least a twentieth is work."""
    net = metrics.copy()
    column = metrics[:, seconds]
    net[:, seconds] = np.maximum(column - change_seconds, 0.05 * column)
    return net


def pack(state: State) -> NDArray[np.float64]:
    """One row of plain numbers per run, [B, S]; NaN where there is no value."""
    columns = [np.asarray(field, np.float64) for field in state]
    return np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)


def unpack(layout: Layout, rows: NDArray[np.float64]) -> State:
    """The runs whose ``pack`` gave ``rows`` [B, S]."""
    values, start = [], 0
    for width, vector in zip(_widths(layout), _VECTORS, strict=True):
        values.append(rows[:, start] if vector else rows[:, start : start + width])
        start += width
    return State(values[0].astype(np.int32), values[1].astype(np.int16), *values[2:])


_VECTORS = [name in {"iteration", "cost"} for name in State._fields]


def _widths(layout: Layout) -> list[int]:
    r, m, f = len(layout.resources), len(layout.metrics), len(layout.features)
    return [1, r, m, m, m, m, f, 1, m, 3, r]
