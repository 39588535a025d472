"""A run's state: what its reports so far tell, as a structure of arrays with leading dimension B."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point
from app.kinds.iterative.projection import over_columns
from app.kinds.iterative.projector import Projector

Array = NDArray[Any]
Levels = NDArray[Any]
TAIL = 4.0  # degrees of freedom of what members are weighed by
SURPRISE = 4.0  # standard deviations of an innovation that a constant run effect can't explain
LARGEST_ERROR = 4.0  # standardised: an iteration out of the ordinary is no scale, and no trend
TREND = 0.3  # share of the latest error in the trend
USUAL_TREND = 2.0  # squares of the trend, against their mean under noise alone, that show no drift yet
OWN_PRIOR = 8.0  # iterations that the samples' scale of errors is worth, against the run's own


class State(NamedTuple):
    """B runs. R resources, M metrics, F features.

    Attributes:
        iteration: number of reports so far = the iteration that is decided next, [B].
        levels: the last reported allocation (before any report: the initial one), [B, R].
        elapsed: sum of each metric over the run so far, [B, M].
        effect: posterior mean of the log run effect, [B, M].
        variance: its posterior variance under any one model, [B, M].
        measured: the last report's metrics, [B, M]; not a number before the first.
        features: the last report's features, [B, F].
        cost: money spent so far, in the price's currency, [B].
        targets: [B, M]; not a number where a metric has none.
        weights: of the reward's terms sla, cost, change, [B, 3].
        prices: per unit and hour, [B, R].
        errors: mean square of the standardised errors of what was expected of the reports so far, [B, M].
        trend: exponentially weighted mean of those errors, [B, M].
        judged: number of reports that ``errors`` is made of, [B].
        effects: posterior mean of the log run effect under each member of the belief, [B, K · M].
        log_weights: log of how likely each member is, [B, K]; where there is one model, both are [B, 0].
        probabilities: with which targets are to be met, [B, M]; not a number where none is asked for.
        upcoming: features of the next U iterations as announced, [B, U, F]; not a number from where nothing is.
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
    errors: Array
    trend: Array
    judged: Array
    effects: Array
    log_weights: Array
    probabilities: Array
    upcoming: Array


def begin(
    projector: Projector,
    levels: Levels,
    *,
    targets: ArrayLike | None = None,
    probabilities: ArrayLike | None = None,
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

    members = projector.members if projector.members > 1 else 0
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
        errors=np.ones((batch, metrics), dtype),
        trend=np.zeros((batch, metrics), dtype),
        judged=np.zeros(batch, dtype),
        effects=np.zeros((batch, members * metrics), dtype),
        log_weights=np.zeros((batch, members), dtype),
        probabilities=rows(probabilities, layout.probabilities),
        upcoming=np.zeros((batch, 0, len(layout.features)), dtype),
    )


class Expected(NamedTuple):
    """What the model expects of one iteration: logs of its metrics, [B, M], and seconds that changes add, [B]."""

    logs: Array
    pause: Array


def expect(projector: Projector, state: State, levels: Levels, features: Array) -> Expected:
    """What is to be expected of the next iteration at ``levels`` [B, R], but for the run effect."""
    logs = projector.log_mean(projector.layout.index(levels), projector.point(features), state.iteration)
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
    noise = projector.noise(state.iteration)
    if projector.members > 1:
        offsets = projector.offsets(projector.layout.index(levels), projector.point(features), state.iteration)
        known = filtered_by_member(projector, state, ratio[:, None] - offsets, noise)
    else:
        known = filtered(projector, state, ratio, noise)
    return state._replace(
        iteration=state.iteration + 1,
        levels=levels,
        elapsed=state.elapsed + metrics,
        measured=metrics,
        features=features,
        cost=state.cost + spent(projector, state.prices, levels, seconds),
        upcoming=state.upcoming[:, 1:],
        **known,
    )


def drift_variance(projector: Projector, state: State) -> Array:
    """Variance of the step that the log run effect takes until the next report, [B, M]: the samples', and what the run
    shows. Errors in a row to the same side are a trend; what of its square is beyond ``USUAL_TREND`` times what noise
    makes of it is how far the effect drifts, in units of ``TREND_DRIFT``.
    """
    trend = state.trend * state.trend * ((2 - TREND) / TREND)
    trend -= USUAL_TREND
    np.maximum(trend, 0, out=trend)
    trend *= projector.trend_variance
    trend += projector.drift_variance
    return trend


def filtered(projector: Projector, state: State, ratio: Array, noise: Array) -> dict[str, Array]:
    """What a report tells, by field of the state: log-ratios measured/predicted ``ratio`` [B, M], of variance ``noise``
    but for what is unknown of the run effect.
    """
    prior = state.variance + drift_variance(projector, state)
    innovation = ratio - state.effect
    squared = innovation * innovation
    judged = _judged(state, innovation, prior + noise)
    np.copyto(prior, squared, where=squared > SURPRISE**2 * (prior + noise))
    gain = prior / (prior + noise)
    innovation *= gain
    gain *= prior
    return {"effect": innovation + state.effect, "variance": np.subtract(prior, gain, out=prior), **judged}


def filtered_by_member(projector: Projector, state: State, ratios: Array, noise: Array) -> dict[str, Array]:
    """As ``filtered``, and ``effects`` and ``log_weights``; ``ratios`` [B, K, M] are measured/predicted of each member.

    The members share the variance, for they share the noise. Each is as likely as its innovations were, whose tails are
    heavier than the normal distribution's (Student's t), so that no single report decides.
    """
    effects = state.effects.reshape(ratios.shape)
    prior = state.variance + drift_variance(projector, state)
    innovation = ratios - effects
    squared = innovation * innovation
    weights = member_weights(state)[:, None]
    surprise, error = (weights @ squared)[:, 0], (weights @ innovation)[:, 0]
    judged = _judged(state, error, prior + noise + (surprise - error * error))
    np.copyto(prior, surprise, where=surprise > SURPRISE**2 * (prior + noise))
    total = prior + noise
    unlikely = np.log1p(squared / (total[:, None] * TAIL)).sum(axis=2)
    log_weights = state.log_weights - (TAIL + 1) / 2 * unlikely
    log_weights -= log_weights.max(axis=1, keepdims=True)
    gain = prior / total
    effects = effects + innovation * gain[:, None]
    after = state._replace(log_weights=log_weights)
    return {
        "effect": (member_weights(after)[:, None] @ effects)[:, 0],
        "variance": prior - gain * prior,
        "effects": effects.reshape(state.effects.shape),
        "log_weights": log_weights,
        **judged,
    }


def _judged(state: State, error: Array, variance: Array) -> dict[str, Array]:
    """``errors``, ``trend`` and ``judged`` with another ``error`` [B, M], which was expected to have ``variance``."""
    latest = error / np.sqrt(variance)
    np.minimum(np.maximum(latest, -LARGEST_ERROR, out=latest), LARGEST_ERROR, out=latest)
    judged = state.judged + 1
    return {
        "errors": state.errors + (latest * latest - state.errors) / judged[:, None],
        "trend": state.trend + TREND * (latest - state.trend),
        "judged": judged,
    }


def own_scale(state: State, usual: Array, own: Array) -> Array:
    """Variance of the run's errors, [B, M]: ``usual`` as the samples have it, worth ``OWN_PRIOR`` iterations, and what
    its own reports say where the model expects ``own`` (the mean of an inverse-gamma posterior, about).
    """
    count = state.judged[:, None]
    scaled: Array = (OWN_PRIOR * usual + count * state.errors * own) / (OWN_PRIOR + count)
    return scaled


def member_weights(state: State) -> Array:
    """How likely each member of the belief is, [B, K]; they sum to 1."""
    weights = np.exp(state.log_weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def by_member(state: State, members: int) -> State:
    """Each run once for each member of the belief, [B · K], members fastest: as if that member were the model.

    That goes for what projections ask for (iteration, levels, elapsed, effect, variance); the rest stays as it is.
    """
    repeated = ("iteration", "levels", "elapsed", "variance")
    apart = {name: np.repeat(getattr(state, name), members, axis=0) for name in repeated}
    metrics = state.effect.shape[1]
    return state._replace(**apart, effect=state.effects.reshape(len(state.iteration) * members, metrics))


def member_point(projector: Projector, point: Point) -> Point:
    """``point`` in ``Projector.believed``, in the order of ``by_member``, [J, B · K]."""
    count = projector.members
    cells = np.repeat(point.cells, count, axis=1)
    cells += np.tile(np.arange(count) * projector.cells, point.cells.shape[1])
    return Point(cells, None if point.weights is None else np.repeat(point.weights, count, axis=1))


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


class RunState(msgspec.Struct, frozen=True):
    """A run between two reports.

    Attributes:
        row: one row of ``pack``, [S].
        upcoming: announced features of the iterations ahead, [U, F].
        notices: codes of what its last decision said beside its reason.
    """

    row: NDArray[np.float64]
    upcoming: NDArray[np.float64]
    notices: frozenset[int] = frozenset()


def pack(state: State) -> NDArray[np.float64]:
    """One row of plain numbers per run, [B, S]; NaN where there is no value. All but the probabilities asked for and
    what is announced.
    """
    columns = [np.asarray(field, np.float64) for field in state[:-2]]
    return np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)


def unpack(layout: Layout, rows: NDArray[np.float64]) -> State:
    """The runs whose ``pack`` gave ``rows`` [B, S], which tell how many members were believed in; probabilities asked
    for are the spec's, and nothing is announced.
    """
    values: list[Array] = []
    start = 0
    for width, vector in zip(_widths(layout, rows.shape[1]), _VECTORS, strict=True):
        values.append(rows[:, start] if vector else rows[:, start : start + width])
        start += width
    values[:2] = values[0].astype(np.int32), values[1].astype(np.int16)
    values += [layout.probabilities[None].repeat(len(rows), axis=0), np.zeros((len(rows), 0, len(layout.features)))]
    return State(*values)


_VECTORS = [name in {"iteration", "cost", "judged"} for name in State._fields[:-2]]


def _widths(layout: Layout, size: int) -> list[int]:
    r, m, f = len(layout.resources), len(layout.metrics), len(layout.features)
    common = [1, r, m, m, m, m, f, 1, m, 3, r, m, m, 1]
    members = (size - sum(common)) // (m + 1)
    return [*common, members * m, members]


def aligned(projector: Projector, rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Rows [S] of B runs, for a model with as many members as ``projector``'s, [B, S]: where a run's is another number,
    they begin anew from what was known of the run effect.
    """
    common = sum(_widths(projector.layout, 0)[:-2])
    members = projector.members if projector.members > 1 else 0
    size = common + members * (len(projector.layout.metrics) + 1)
    aligned = [row if len(row) == size else _anew(projector, row, common, members) for row in rows]
    return np.concatenate(aligned).reshape(len(rows), size)  # several times faster than an array of rows


def _anew(projector: Projector, row: NDArray[np.float64], common: int, members: int) -> NDArray[np.float64]:
    layout, metrics = projector.layout, len(projector.layout.metrics)
    if len(row) == common + members * (metrics + 1):
        return row
    first = 1 + len(layout.resources) + metrics
    effects = np.tile(row[first : first + metrics], members)
    return np.concatenate([row[:common], effects, np.zeros(members)])
