"""What a decision promises: the next iteration's metrics with intervals, and where the run goes with and without it."""

from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.announced import Announced, Remaining, announced, remaining
from app.kinds.iterative.chance import chances_of
from app.kinds.iterative.feature_grid import Point
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, drift_variance, member_weights, own_scale

Array = NDArray[np.floating]
Indices = NDArray[np.integer]
SIGNS = {"at_most": 1.0, "at_least": -1.0, "track": 1.0}


class Forecast(NamedTuple):
    """B decisions, M metrics; the first axis of pairs is (keep the present allocation, take the decided one).

    Attributes:
        mean, low, high: of each metric in the next iteration at the decided allocation, [B, M].
        projected: each metric at the end of the run, [2, B, M]: a run's target is held against its sum, an iteration's
            against its typical value over what is left.
        excess: relative miss of the target, negative when it is met with room to spare, [2, B, M]; −∞ without target.
        chance: how likely the target is to be met, [2, B, M]; not a number where that can't be told.
        rest: seconds of the rest of the run, [2, B].
        cost: money for it, [2, B].
    """

    mean: Array
    low: Array
    high: Array
    projected: Array
    excess: Array
    chance: Array
    rest: Array
    cost: Array


def forecast(
    projector: Projector, state: State, hold: Indices, chosen: Indices, pause: Array, then: Indices | None = None
) -> Forecast:
    """Forecast for moving from row ``hold`` [B] of the grid to ``chosen`` [B], which takes ``pause`` [B] seconds.

    Where ``then`` [B] is a row of the grid, it follows either after the next iteration; where it is −1 or not given,
    either is held to the end.
    """
    layout, pair = projector.layout, np.array([hold, chosen])
    after = None if then is None or (then < 0).all() else np.where(then >= 0, then, pair)
    told, pauses = announced(projector, state), np.array([0 * pause, pause])
    if after is not None:
        returning = projector.grid_levels[pair] != projector.grid_levels[after]  # [2, B, R]
        pauses = pauses + returning @ projector.change_seconds
    left, apart = remaining(projector, state, pair, told, after)
    projected, rest = _expected(projector, state, left, apart)
    rest += pauses
    if layout.spec.metrics[layout.seconds].scope == "run":
        projected[:, :, layout.seconds] += pauses
    rates = (layout.allocations[pair] * state.prices).sum(axis=2) * projector.hours_per_second
    mean, low, high = next_iteration(projector, state, chosen, told, pause)
    excess = _excess(projector, state, projected)
    if projector.table.informed:
        chance = chances_of(projector, state, left, apart, pauses).transpose(1, 2, 0)
    else:
        chance = np.full(projected.shape, np.nan)
    cost = rates * rest
    if after is not None:
        _, later = _expected(projector, state, left.taken_over(), apart)
        taking_over = (layout.allocations[after] * state.prices).sum(axis=2) * projector.hours_per_second
        cost += later * (taking_over - rates)
    return Forecast(mean, low, high, projected, excess, chance, rest, cost)


def _expected(projector: Projector, state: State, left: Remaining, apart: State) -> tuple[Array, Array]:
    """What ``_projected`` and, for seconds, ``_rest`` give, over all members of the belief."""
    projected, rest = _projected(left, apart), _rest(left, apart, projector.layout.seconds)
    if apart is state:
        return projected, rest
    count, weights = projector.members, member_weights(state)
    by_run = projected.reshape(2, -1, count, projected.shape[2]), rest.reshape(2, -1, count)
    return np.einsum("pbkm,bk->pbm", by_run[0], weights), np.einsum("pbk,bk->pb", by_run[1], weights)


def _rest(left: Remaining, state: State, metric: int) -> Array:
    """Σ of a metric over what is left of the run, [2, B], under the run effect's posterior."""
    factor = np.exp(state.effect[:, metric] + state.variance[:, metric] / 2)
    return left.rest(metric) * factor


def _projected(left: Remaining, state: State) -> Array:
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
    """The sign of a miss, and which metrics are to be tracked, by metric, [M] each; None where none is."""
    tracked = np.array([goal == "track" for goal in goals])
    return np.array([SIGNS[goal] for goal in goals]), tracked if tracked.any() else None


class Following(NamedTuple):
    """What the model expects of the next iteration but for the run effect.

    Attributes:
        logs: of the metrics, [B, M].
        offsets: of each member's against them, [B, K, M]; None where there is one model.
        unknown: variance of the logs for want of knowing the features, [B, M].
        noise: variance of the log metrics, that included, [B, M].
    """

    logs: Array
    offsets: Array | None
    unknown: Array
    noise: Array


def following(projector: Projector, state: State, chosen: Indices, told: Announced | None) -> Following:
    """The next iteration at rows ``chosen`` [B] of the grid: at its features if announced, else by the course."""
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
    """Mean and interval of the next iteration's metrics at rows ``chosen`` [B] of the allocation grid, [B, M] each.

    What is still unknown of the run effect widens the interval from the model's within-run offsets to its between-run
    ones, and so does what the members of the belief differ by and what features nobody announced may be, in quadrature:
    all stem from normal errors of the log. Loud iterations have wider ones. From report to report the run's own errors
    take the place of those that the samples' offsets were made of.
    """
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
    down, up = np.sqrt(own_scale(state, usual, own))
    mean = np.exp(centre + coming.noise / 2)
    low, high = np.exp(centre - down), np.exp(centre + up)
    for values in (mean, low, high):
        values[:, projector.layout.seconds] += pause
    return mean, low, high


@lru_cache
def _width(level: float) -> float:
    """Half of the central interval of the standard normal distribution that holds ``level``."""
    return NormalDist().inv_cdf((1 + level) / 2)
