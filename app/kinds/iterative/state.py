"""State of runs from their reports, as arrays with leading dimension B, and the filter of the run effect."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point
from app.kinds.iterative.projection import over_columns
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.requests import Request

Array = NDArray[Any]
Levels = NDArray[Any]
TAIL = 4.0  # degrees of freedom of the members' likelihood
SURPRISE = 4.0  # standard deviations of an innovation that a constant run effect can't explain
LARGEST_ERROR = 4.0  # standardised: an iteration out of the ordinary is no scale, and no trend
TREND = 0.3  # share of the latest error in the trend
USUAL_TREND = 2.0  # squares of the trend, against their mean under noise alone, that show no drift yet
OWN_PRIOR = 8.0  # iterations that the samples' scale of errors is worth, against the run's own


class State(NamedTuple):
    """State of B runs; R resources, M metrics, F features, K ensemble members.

    Attributes:
        iteration: number of reports so far, the next iteration to decide, [B].
        levels: last reported allocation (before any report the initial one), in steps, [B, R].
        elapsed: sum of each metric over the run so far, [B, M].
        effect: posterior mean of the log run effect (factor between the run and the model), [B, M].
        variance: posterior variance of the log run effect under any one model, [B, M].
        measured: metrics of the last report, [B, M]; NaN before the first.
        features: features of the last report, [B, F].
        cost: money spent so far, in the prices' currency, [B].
        targets: targets in the metrics' units, [B, M]; NaN: none.
        weights: weights of the reward's terms sla, cost, change, [B, 3].
        prices: price of each resource per unit and hour, [B, R].
        errors: mean square of standardised prediction errors so far, [B, M].
        trend: exponentially weighted mean of these errors, [B, M].
        judged: number of reports in ``errors``, [B].
        effects: posterior mean of the log run effect under each member, [B, K · M].
        log_weights: log posterior weight of each member, up to a constant, [B, K]; both are [B, 0] for a single model.
        probabilities: required probabilities of targets, [B, M]; NaN: none.
        upcoming: announced features of the next U iterations, [B, U, F]; NaN where not announced.
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
    """Return the states of B runs without reports at allocations ``levels`` [B, R] of R resources.

    The other values ([B, ...] or one row for all) default to the spec's; features, to the middle of their bounds."""
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


class ExpectedLogs(NamedTuple):
    """Expected natural logarithms ``logs`` of M metrics in an iteration of B runs, [B, M], and seconds ``pause`` added
    by changes, [B]."""

    logs: Array
    pause: Array


def expect(projector: Projector, state: State, levels: Levels, features: Array) -> ExpectedLogs:
    """Return the expectation of the next iteration at ``levels`` [B, R] with ``features`` [B, F], if the run's factor
    (run effect) is 1."""
    logs = projector.log_mean(projector.layout.index(levels), projector.point(features), state.iteration)
    pause = over_columns((levels != state.levels) * projector.change_seconds)
    return ExpectedLogs(logs, pause * (state.iteration > 0))


def advance(
    projector: Projector,
    state: State,
    levels: Levels,
    metrics: Array,
    features: Array,
    expected: ExpectedLogs | None = None,
    paused: Array | None = None,
) -> State:
    """Return the states after a report: ``levels`` [B, R] used, ``metrics`` [B, M] measured, with ``features`` [B, F].

    The log run effect is a random walk observed with noise (a local level model); a Kalman step updates its normal
    posterior. An innovation beyond ``SURPRISE`` standard deviations widens the prior, so that a disturbance is followed
    at once instead of averaged away. ``expected``: cached result of ``expect``; ``paused`` [B]: measured seconds of a
    change, which replace the expected ones; NaN: unknown."""
    logs, pause = expect(projector, state, levels, features) if expected is None else expected
    least = np.full(len(pause), LEAST_LEFT)
    if paused is not None:
        unknown = np.isnan(paused)
        pause, least = np.where(unknown, pause, paused), least * unknown
    seconds = metrics[:, projector.layout.seconds]
    ratio = np.log(_without_change(metrics, pause, least, projector.layout.seconds)) - logs
    noise = projector.noise(state.iteration)
    if projector.members > 1:
        offsets = projector.offsets(projector.layout.index(levels), projector.point(features), state.iteration)
        known = filtered_by_member(projector, state, ratio[:, None] - offsets, noise)
    else:
        known = kalman_update(projector, state, ratio, noise)
    return state._replace(
        iteration=state.iteration + 1,
        levels=levels,
        elapsed=state.elapsed + metrics,
        measured=metrics,
        features=features,
        cost=state.cost + allocation_cost(projector, state.prices, levels, seconds),
        upcoming=state.upcoming[:, 1:],
        **known,
    )


def drift_variance(projector: Projector, state: State) -> Array:
    """Return the variance of the log run effect's step until the next report, [B, M]: the table's, plus
    ``trend_variance`` times the excess of the run's standardised squared trend over ``USUAL_TREND``.

    The trend is the mean of successive errors; without drift its standardised square is about 1."""
    trend = state.trend * state.trend * ((2 - TREND) / TREND)
    trend -= USUAL_TREND
    np.maximum(trend, 0, out=trend)
    trend *= projector.trend_variance
    trend += projector.drift_variance
    return trend


def kalman_update(projector: Projector, state: State, ratio: Array, noise: Array) -> dict[str, Array]:
    """Return the state's updated fields after a report, by a Kalman step for M metrics of B runs.

    ``ratio`` [B, M]: natural logarithms of measured/predicted; ``noise`` [B, M] or [1, M]: their noise variance."""
    prior = state.variance + drift_variance(projector, state)
    innovation = ratio - state.effect
    squared = innovation * innovation
    judged = _update_errors(state, innovation, prior + noise)
    np.copyto(prior, squared, where=squared > SURPRISE**2 * (prior + noise))
    gain = prior / (prior + noise)
    innovation *= gain
    gain *= prior
    return {"effect": innovation + state.effect, "variance": np.subtract(prior, gain, out=prior), **judged}


def filtered_by_member(projector: Projector, state: State, ratios: Array, noise: Array) -> dict[str, Array]:
    """Return the state's updated fields after a report, from K members' log ratios measured/predicted [B, K, M].

    Members have a common variance, as their noise is the same. Their likelihood is Student's t of the innovation, with
    heavier tails than the normal, so that no single report is decisive."""
    effects = state.effects.reshape(ratios.shape)
    prior = state.variance + drift_variance(projector, state)
    innovation = ratios - effects
    squared = innovation * innovation
    weights = member_weights(state)[:, None]
    surprise, error = (weights @ squared)[:, 0], (weights @ innovation)[:, 0]
    judged = _update_errors(state, error, prior + noise + (surprise - error * error))
    if projector.table.noise_weight:
        noise = noise * noise_scale(projector, state)
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


def _update_errors(state: State, error: Array, variance: Array) -> dict[str, Array]:
    """Return ``errors``, ``trend`` and ``judged`` updated by a prediction ``error`` [B, M] of expected ``variance``."""
    latest = error / np.sqrt(variance)
    np.minimum(np.maximum(latest, -LARGEST_ERROR, out=latest), LARGEST_ERROR, out=latest)
    judged = state.judged + 1
    return {
        "errors": state.errors + (latest * latest - state.errors) / judged[:, None],
        "trend": state.trend + TREND * (latest - state.trend),
        "judged": judged,
    }


def own_scale(projector: Projector, state: State, usual: Array, own: Array) -> Array:
    """Return the expected squared log errors of B runs, [B, M]: a mean of the table's, ``usual``, with a weight of
    ``noise_weight`` (if 0, ``OWN_PRIOR``) reports, and the run's own, ``own`` · ``errors``, with that of its reports.

    ``own`` is the variance that the model expects. The result is about the mean of an inverse-gamma posterior."""
    count, weight = state.judged[:, None], projector.table.noise_weight or OWN_PRIOR
    scaled: Array = (weight * usual + count * state.errors * own) / (weight + count)
    return scaled


def noise_scale(projector: Projector, state: State) -> Array:
    """Return the ratio of each run's noise variance, estimated from its errors so far, to the table's, [B, M]; for
    tables with a ``noise_weight`` above 0."""
    return own_scale(projector, state, projector.dtype.type(1), projector.dtype.type(1))


def has_probability(state: State) -> NDArray[np.bool_]:
    """Return a mask [B, M] of the targets, of B runs and M metrics, that have a required probability."""
    missing: NDArray[np.bool_] = np.isnan(state.probabilities + state.targets)
    return ~missing


# What a declared shift of pace changes in model-predictive control.


EARLIER, STEADIER = 0.33, 4.0
"""By mean log factor of the pace: how much earlier targets are aimed at, and how much the least gain of a change grows,
both as natural logarithms. Of 0 to 0.8 and 0 to 6 these had nearly the best mean return on 304 workloads, drawn as in
``benchmarks.drawn_workloads`` from seeds below 5,000; larger ones lost more where they lost. A wider belief of the run
effect added 0.1 % of the return, within the standard error."""


def slowdown(projector: Projector, state: State) -> Array:
    """Return the mean natural logarithm of the factor by which each of B runs becomes slower as declared, [B].

    It is 0 for runs with a required probability or without targets, whose rule is as without a declared shift."""
    slower = np.full(len(state.iteration), projector.slowdown, projector.dtype)
    slower[has_probability(state).any(axis=1) | np.isnan(state.targets).all(axis=1)] = 0
    return slower


def aimed(projector: Projector, state: State) -> State:
    """Return B runs with the targets for which model-predictive control values actions: early enough for the declared
    shift of pace. They are ``state`` itself without such a shift."""
    if not projector.slowdown:
        return state
    return state._replace(targets=state.targets * np.exp(-EARLIER * slowdown(projector, state))[:, None])


def log_factor(projector: Projector, state: State, metric: int) -> Array:
    """Return the logarithm of the expected factor between sums of a ``metric`` in B runs and the table's, [B].

    The run effect is log-normal. Where the table's noise has a ``noise_weight``, a quieter run has a lower mean;
    a few loud iterations don't raise it, as they say little about those to come."""
    log: Array = state.effect[:, metric] + state.variance[:, metric] / 2
    if projector.table.noise_weight:
        log = log + (np.minimum(noise_scale(projector, state)[:, metric], 1) - 1) * (
            projector.noise_variance[metric] / 2
        )
    return log


def member_weights(state: State) -> Array:
    """Return the posterior probability of each of K ensemble members for B runs, [B, K], with sum 1 per run."""
    weights = np.exp(state.log_weights)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def by_member(state: State, members: int) -> State:
    """Return the states of B · K runs: row b · K + k is run b, as if ensemble member k were the model.

    Only fields for projections (iteration, levels, elapsed, effect, variance, errors, judged) are repeated; others keep
    B rows."""
    repeated = ("iteration", "levels", "elapsed", "variance", "errors", "judged")
    apart = {name: np.repeat(getattr(state, name), members, axis=0) for name in repeated}
    metrics = state.effect.shape[1]
    return state._replace(**apart, effect=state.effects.reshape(len(state.iteration) * members, metrics))


def member_point(projector: Projector, point: Point) -> Point:
    """Return ``point`` [J, B] for K members in ``Projector.believed``, [J, B · K], in the order of ``by_member``."""
    count = projector.members
    cells = np.repeat(point.cells, count, axis=1)
    cells += np.tile(np.arange(count) * projector.cells, point.cells.shape[1])
    return Point(cells, None if point.weights is None else np.repeat(point.weights, count, axis=1))


def allocation_cost(projector: Projector, prices: Array, levels: Levels, seconds: Array) -> Array:
    """Return the cost, [B], of ``levels`` [B, R] held for ``seconds`` [B] at ``prices`` [B, R] per unit and hour."""
    rate: Array = over_columns(projector.units(levels) * prices)
    return rate * seconds * projector.hours_per_second


LEAST_LEFT = 0.05
"""Share of an iteration that is left when the expected seconds of a change are taken off it."""


def _without_change(metrics: Array, change_seconds: Array, least: Array, seconds: int) -> Array:
    """Return ``metrics`` [B, M] with the duration, at position ``seconds``, less ``change_seconds`` [B]; a share
    ``least`` [B] of it remains."""
    net = metrics.copy()
    column = metrics[:, seconds]
    net[:, seconds] = np.maximum(column - change_seconds, least * column)
    return net


class RunState(msgspec.Struct, frozen=True):
    """A run between two reports.

    Attributes:
        row: the S numbers of the run in ``pack``, [S].
        upcoming: F features of each of U announced iterations, [U, F].
        notices: codes of the notices in the run's last decision.
        belief: identifier of the model to which the run effect relates, a version or a negative hash.
        changes: whether the allocation of each of the last reports differs from that of the one before, a bit each, the
            latest one lowest.
        requests: requested allocations that were not granted.
    """

    row: NDArray[np.float64]
    upcoming: NDArray[np.float64]
    notices: frozenset[int] = frozenset()
    belief: int = 0
    changes: int = 0
    requests: Sequence[Request] = ()


def pack(state: State) -> NDArray[np.float64]:
    """Return the state of B runs as one row of S numbers each, [B, S]; NaN: no value.

    Required probabilities and announced features are left out."""
    columns = [np.asarray(field, np.float64) for field in state[:-2]]
    return np.concatenate([c[:, None] if c.ndim == 1 else c for c in columns], axis=1)


def unpack(layout: Layout, rows: NDArray[np.float64]) -> State:
    """Return the states of B runs from rows [B, S] of ``pack``, whose length implies the number of ensemble members.

    Required probabilities are the spec's, and no features of future iterations are known."""
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


def stack_rows(projector: Projector, rows: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Stack the B runs' rows of ``pack`` to [B, S], for the projector's number of ensemble members.

    In rows with another number of members, the members restart from the row's mean run effect with equal weights."""
    common = sum(_widths(projector.layout, 0)[:-2])
    members = projector.members if projector.members > 1 else 0
    size = common + members * (len(projector.layout.metrics) + 1)
    aligned = [row if len(row) == size else _anew(projector, row, common, members) for row in rows]
    return np.concatenate(aligned).reshape(len(rows), size)  # several times faster than an array of rows


def _anew(projector: Projector, row: NDArray[np.float64], common: int, members: int) -> NDArray[np.float64]:
    layout, metrics = projector.layout, len(projector.layout.metrics)
    first = 1 + len(layout.resources) + metrics
    effects = np.tile(row[first : first + metrics], members)
    return np.concatenate([row[:common], effects, np.zeros(members)])


def restart_belief(projector: Projector, row: NDArray[np.float64], *, related: bool) -> NDArray[np.float64]:
    """Return a run's row of ``pack`` [S], its run effect estimated anew under another domain model, ``projector``'s.

    All ensemble members are equally likely again. If the models are ``related``, both fitted to the workload's samples,
    the mean run effect is kept, as it means the same under both."""
    common, members = sum(_widths(projector.layout, 0)[:-2]), projector.members if projector.members > 1 else 0
    found = _anew(projector, row, common, members)
    if related:
        return found
    state = unpack(projector.layout, found[None])
    fresh = begin(projector, state.levels)
    names = ("effect", "variance", "errors", "trend", "judged", "effects", "log_weights")
    return pack(state._replace(**{name: getattr(fresh, name) for name in names}))[0]
