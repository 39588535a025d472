"""What is left of the log metric once the model has spoken: run effect, noise within a run, and drift.

    residual = run effect + random walk + noise

Real logs have tails: scales are robust; what they exclude is listed by ``unexplained`` instead of being averaged in.
"""

from typing import NamedTuple

import numpy as np

from workers.estimators.base import Floats, Integers
from workers.estimators.intervals import Offsets, bounds, calibrate, execution_weights
from workers.estimators.replicates import grouped_median

TAIL = 4.0  # robust standard deviations beyond which a residual is no noise
MOST_LAGS = 8
RESAMPLES = 200


class Spreads(NamedTuple):
    """Of one metric: standard deviation of the drift per iteration; the effect of each execution [G]; the residual of
    each row without it [n]; bounds of that residual, with their coverage.
    """

    drift_sd: float
    effects: Floats
    within: Floats
    bounds: Offsets


def decompose(held_out: Floats, groups: Integers, iterations: Integers, folds: Integers, seed: int) -> Spreads:
    """Split log residuals of models without the execution, ``held_out`` [n]."""
    effects = grouped_median(held_out, groups, int(groups.max()) + 1)
    within = held_out - effects[groups]
    drift_variance = _drift_variance(within, groups, iterations, np.random.default_rng(seed))
    found = calibrate(leave_one_out(within, groups), groups, folds)
    return Spreads(float(np.sqrt(drift_variance)), effects, within, found)


def leave_one_out(within: Floats, groups: Integers) -> Floats:
    """Residuals [n] against an effect estimated from the other rows of the execution, to first order."""
    counts = np.bincount(groups)[groups]
    return np.asarray(within * counts / np.maximum(counts - 1, 1), np.float64)


def run_bounds(spreads: Spreads, groups: Integers, level: float) -> tuple[float, float]:
    """Bounds of a row's residual at ``level`` once the run effect is known."""
    return bounds(leave_one_out(spreads.within, groups), groups, level)


def _sequences(within: Floats, groups: Integers, iterations: Integers) -> list[Floats]:
    """Residuals of each execution in order of iteration, clipped to what can be noise."""
    limit = TAIL * max(1.4826 * float(np.median(np.abs(within))), 1e-9)
    clipped = np.clip(within, -limit, limit)
    order = np.lexsort((iterations, groups))
    return np.split(clipped[order], np.flatnonzero(np.diff(groups[order])) + 1)


def _variogram(sequences: list[Floats], lags: int) -> tuple[Floats, Floats]:
    """Sum of squared differences and their number, [sequences, lags]."""
    sums, counts = np.zeros((len(sequences), lags)), np.zeros((len(sequences), lags))
    for i, values in enumerate(sequences):
        for k in range(1, min(lags, len(values) - 1) + 1):
            sums[i, k - 1] = ((values[k:] - values[:-k]) ** 2).sum()
            counts[i, k - 1] = len(values) - k
    return sums, counts


def _slope(sums: Floats, counts: Floats) -> float:
    """Slope over the lag of E (e[t+k] − e[t])² = 2·noise² + k·drift²."""
    total = counts.sum(axis=0)
    lags = np.flatnonzero(total > 0) + 1.0
    if len(lags) < 3:
        return 0.0
    weights = total[total > 0]
    values = sums.sum(axis=0)[total > 0] / weights
    centred = lags - np.average(lags, weights=weights)
    return float((weights * centred * values).sum() / (weights * centred**2).sum())


def _drift_variance(within: Floats, groups: Integers, iterations: Integers, rng: np.random.Generator) -> float:
    """Variance per iteration of a random walk of the run effect; 0 unless significant over executions (97.5 %)."""
    sequences = _sequences(within, groups, iterations)
    sums, counts = _variogram(sequences, MOST_LAGS)
    draws = rng.integers(0, len(sequences), (RESAMPLES, len(sequences)))
    slopes = [_slope(sums[draw], counts[draw]) for draw in draws]
    return max(_slope(sums, counts), 0.0) if float(np.quantile(slopes, 0.025)) > 0 else 0.0


def mean_by_execution(values: Floats, groups: Integers) -> float:
    """Mean of ``values`` [n] in which every execution weighs the same."""
    return float(np.average(values, weights=execution_weights(groups)))
