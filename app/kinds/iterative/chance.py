"""Probabilities to meet targets, and the best option among those that meet them with the required probability.

Three things about a run's end are uncertain: which ensemble member it follows, its run effect, and the noise to come.
Within a member, the logarithm of the remaining sum follows Student's t distribution: spreads are estimated from few
executions, and noise has heavier tails than the normal distribution."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.iterative.announced import Remaining, announced_iterations, remaining
from app.kinds.iterative.observation import Options, outlook
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, has_probability, log_factor, member_weights, noise_scale

Array = NDArray[Any]
Indices = NDArray[np.integer]
RESERVE = 0.25
BEYOND = {"at_most": 1e30, "at_least": 1e-30}  # targets that are always met


def chances(
    projector: Projector, state: State, allocation: Indices, pause: Array, then: Indices | None = None
) -> Array:
    """Return the probability to meet each target, [M, K, B], for M metrics, K allocations and B runs.

    It is NaN for a metric without a target, or with a set point. A target for the whole run is compared with its end,
    one per iteration with the next iteration.

    Args:
        projector: the workload's domain model.
        state: states of the B runs.
        allocation: rows of the allocation grid to change to now, [K, B].
        pause: seconds that the change takes, [K, B] or [K, 1].
        then: rows of the grid after the next iteration, [K, B]; None: ``allocation`` throughout.
    """
    left, apart = remaining(projector, state, allocation, announced_iterations(projector, state), then)
    return chances_of(projector, state, left, apart, pause)


def chances_of(projector: Projector, state: State, left: Remaining, apart: State, pause: Array) -> Array:
    """Return the probability to meet each target, [M, K, B], for M metrics, K allocations and B runs; NaN: no target.

    ``left`` and ``apart``: result of ``announced.remaining`` for ``state``; ``pause`` [K, B or 1]: seconds of the
    change."""
    if apart is state:
        return _chances(left, state, pause)
    count = projector.members
    each = _chances(left, apart, pause if pause.shape[1] == 1 else pause.repeat(count, axis=1))
    mixed: Array = np.einsum("mnbk,bk->mnb", each.reshape(*each.shape[:2], -1, count), member_weights(state))
    return mixed


def meets_targets(
    projector: Projector, state: State, options: Options, present: int | None = None
) -> NDArray[np.bool_]:
    """Return a mask [K, B] of the K options that meet every target of each of B runs with the required probability.

    Options less likely to meet a target than option ``present`` need ``RESERVE`` of the remaining probability more, so
    that a run at the threshold doesn't change with every report."""
    found = chances(projector, state, options.allocation, options.pause)
    required = state.probabilities.T[:, None]
    if present is not None:
        less = found < found[:, present, None]
        required = required + less * (RESERVE * (1 - required))
    enough: NDArray[np.bool_] = found >= required
    enough |= ~has_probability(state).T[:, None]
    return np.logical_and.reduce(enough, axis=0)


def assured_outlook(projector: Projector, state: State, options: Options, present: int | None = None) -> Array:
    """Return the expected return-to-go of each of K options held to the end, [K, B]; −∞ where a target isn't met with
    the required probability, or by a margin where that is less likely than with option ``present``. Misses of targets
    with a required probability cost nothing here."""
    expected = outlook(projector, _relax_targets(projector, state), options)
    return np.where(meets_targets(projector, state, options, present), expected, -np.inf)


def _relax_targets(projector: Projector, state: State) -> State:
    """Return ``state`` with each target that has a required probability replaced by one that is always met."""
    always = [BEYOND.get(metric.goal, np.nan) for metric in projector.layout.spec.metrics]
    return state._replace(targets=np.where(has_probability(state), projector.dtype.type(always), state.targets))


def _chances(left: Remaining, state: State, pause: Array) -> Array:
    projector, layout = left.ahead, left.ahead.layout
    out = np.full((len(layout.metrics), *left.allocation.shape), np.nan, projector.dtype)
    for index in projector.targeted:
        metric = layout.spec.metrics[index]
        if metric.goal == "track":
            continue
        expect = _at_the_end if metric.scope == "run" else _next
        below = expect(left, state, index, pause if index == layout.seconds else pause * 0)
        out[index] = below if metric.goal == "at_most" else 1 - below
    return out


def _at_the_end(left: Remaining, state: State, metric: int, pause: Array) -> Array:
    """Return the probability that a metric's sum over the run plus ``pause`` is at most its target, [K, B].

    The remaining sum has the mean and variance of independent log-normal iterations, given the run effect."""
    projector = left.ahead
    count = np.maximum(projector.layout.iterations - state.iteration, 1)
    room = state.targets[:, metric] - state.elapsed[:, metric] - pause
    median, variance = _log_sum(projector, state, metric, (left.rest(metric), left.variance(metric)), count)
    below = student_cdf((np.log(np.maximum(room, 1e-12)) - median) / np.sqrt(variance))
    np.copyto(below, 1, where=state.iteration >= projector.layout.iterations)
    np.copyto(below, 0, where=room < 0)
    return below


def _log_sum(
    projector: Projector, state: State, metric: int, moments: tuple[Array, Array], count: Array
) -> tuple[Array, Array]:
    """Return median and variance of the logarithm of a metric's sum over ``count`` [B] iterations, [K, B] each, from
    the ``moments`` of that sum for a run effect of 1: mean and variance by noise, [K, B] each."""
    rest = np.maximum(moments[0], 1e-12)
    spread = moments[1] / rest**2
    half = (state.variance[:, metric] + spread) / 2
    if projector.table.noise_weight:
        own = noise_scale(projector, state)[:, metric]
        half = (state.variance[:, metric] + spread * np.minimum(own, 1)) / 2  # as in the mean
        spread = spread * own
    variance = spread + (state.variance[:, metric] + projector.drift_variance[metric] * (count / 3))
    return np.log(rest) + log_factor(projector, state, metric) - half, variance


HALVINGS, WIDEST = 40, 12.0
"""Steps of the search for a quantile, and how many standard deviations around the median it spans."""


def sums_ahead(
    projector: Projector, state: State, allocation: int, metric: int, until: Sequence[int], shares: Sequence[float]
) -> Array:
    """Return the quantiles of a metric's sum over the run after coming iterations, [Q, J], in its unit.

    They are of the distribution by which ``chances`` computes probabilities. Announced features are not considered.

    Args:
        projector: the workload's domain model.
        state: state of one run (B = 1).
        allocation: row of the allocation grid that is held.
        metric: position of a metric with a target for the whole run.
        until: numbers J of iterations, above ``state.iteration``, before which the sums end.
        shares: the quantiles' Q probabilities.
    """
    left, apart = remaining(projector, state, np.array([[allocation]]), None)
    weights = np.ones((1, 1)) if apart is state else member_weights(state)
    logs = []
    for end in until:
        after = replace(left, iteration=np.full_like(left.iteration, end))
        moments = left.rest(metric) - after.rest(metric), np.maximum(left.variance(metric) - after.variance(metric), 0)
        count = np.full(len(left.iteration), end) - left.iteration
        median, variance = _log_sum(left.ahead, apart, metric, moments, count)
        logs.append((median[0], np.sqrt(variance[0])))
    median, sd = (np.stack(part) for part in zip(*logs, strict=True))  # [J, K]
    low = np.tile((median - WIDEST * sd).min(axis=1), (len(shares), 1))
    high = np.tile((median + WIDEST * sd).max(axis=1), (len(shares), 1))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = (student_cdf((middle[:, :, None] - median) / sd) * weights).sum(axis=2) < np.array(shares)[:, None]
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    sums: Array = state.elapsed[0, metric] + np.exp(high)
    return sums


def _next(left: Remaining, state: State, metric: int, pause: Array) -> Array:
    """Return the probability that a metric of the next iteration plus ``pause`` is at most its target, [K, B]."""
    projector = left.ahead
    logs, noise = left.next(metric)
    if projector.table.noise_weight:
        noise = noise * noise_scale(projector, state)[:, metric]
    room = np.maximum(state.targets[:, metric] - pause, 1e-12)
    variance = state.variance[:, metric] + projector.drift_variance[metric] + noise
    return student_cdf((np.log(room) - logs - state.effect[:, metric]) / np.sqrt(variance))


def student_cdf(value: Array) -> Array:
    """Return the cumulative distribution function of Student's t with 4 degrees of freedom at ``value``, elementwise
    (Abramowitz and Stegun, 1964, 26.7.4)."""
    squared = value * value
    share = 1 / (4 + squared)
    angle = value * np.sqrt(share)
    probability: Array = 0.5 + 0.5 * angle * (1 + 2 * share)
    return probability
