"""Residuals of domain models: prediction intervals, run effects, drift, and unexplained measurements.

Shapes: n rows (measurements), G executions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import stdtrit

from app.charts.text import number
from workers.estimators.base import LEVEL, Floats, Integers, grouped_median

# Conformal intervals: calibrated on held-out executions, for their actual coverage.
#
# Source: Vovk et al., “Algorithmic Learning in a Random World”, 2005; cross-conformal prediction, Vovk 2015. Rows of
# one execution depend on each other, so folds and weights are by execution.


ENOUGH_EXECUTIONS = 20  # from here on 5 % of the executions are at least one


class Offsets(NamedTuple):
    """Bounds of the natural-log residual at probability ``level``, and cross-validated ``coverage`` (both 0 to 1)."""

    low: float
    high: float
    coverage: float
    level: float


def weighted_quantile(values: Floats, weights: Floats, probability: float) -> float:
    """Return the least of ``values`` [n] at which cumulated ``weights`` [n] reach a share of ``probability`` (0–1)."""
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    place = int(np.searchsorted(cumulated, probability * cumulated[-1] * (1 - 1e-12)))
    return float(values[order][min(place, len(values) - 1)])


def execution_weights(groups: Integers) -> Floats:
    """Return a weight for each row [n] such that the weights of every execution (``groups`` [n]) sum to 1."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return 1.0 / counts[inverse]


def bounds(residuals: Floats, groups: Integers, level: float = LEVEL) -> tuple[float, float]:
    """Return lower and upper bound of a new execution's natural-log residual at probability ``level`` (0 to 1).

    For 20 or more executions (``groups`` [n]) they are conformal quantiles of ``residuals`` [n], which weigh all
    executions equally; for fewer, symmetric quantiles of Student's t distribution.
    """
    executions = len(np.unique(groups))
    weights = execution_weights(groups)
    tail = (1 - level) / 2
    if executions < ENOUGH_EXECUTIONS:
        variance = float((weights * residuals**2).sum() / weights.sum())
        reach = float(stdtrit(max(executions - 1, 1), 1 - tail) * np.sqrt(variance))
        return -reach, reach
    inner = np.floor((executions + 1) * tail + 1e-9) / executions  # each of n + 1 ranks is equally likely
    low = weighted_quantile(residuals, weights, inner)
    high = -weighted_quantile(-residuals, weights, inner)
    return min(low, 0.0), max(high, 0.0)


def calibrate(residuals: Floats, groups: Integers, folds: Integers, level: float = LEVEL) -> Offsets:
    """Return bounds from held-out natural-log ``residuals`` [n], and the share inside bounds from the other folds.

    ``groups`` and ``folds`` are each row's execution and fold, [n]; ``level`` is the bounds' probability.
    """
    inside = np.zeros(len(residuals))
    for fold in np.unique(folds):
        judged = folds == fold
        if judged.all():
            low, high = bounds(residuals, groups, level)
        else:
            low, high = bounds(residuals[~judged], groups[~judged], level)
        inside[judged] = (residuals[judged] >= low) & (residuals[judged] <= high)
    weights = execution_weights(groups)
    low, high = bounds(residuals, groups, level)
    return Offsets(low, high, float((weights * inside).sum() / weights.sum()), level)


# Components of the residual of the log metric: run effect, noise within a run, and drift.
#
#     residual = run effect + random walk + noise
#
# Real logs have heavy tails: scales are robust, and outliers are reported by ``unexplained_entries`` instead of
# averaged in.


TAIL = 4.0  # robust standard deviations beyond which a residual is an outlier
MOST_LAGS = 8
RESAMPLES = 200
FEWEST_SHOWN_TO_DRIFT = 4  # executions, below which a bootstrap is meaningless


class Spreads(NamedTuple):
    """Components of one metric's natural-log residuals, for n rows of G executions.

    Attributes:
        drift_sd: standard deviation of the random-walk drift per iteration; 0 if not significant.
        effects: effect of each execution, [G]; NaN for one without rows.
        within: natural-log residual of each row without its execution's effect, [n].
        bounds: bounds of ``within`` for a new row, and their coverage.
    """

    drift_sd: float
    effects: Floats
    within: Floats
    bounds: Offsets


def decompose(held_out: Floats, groups: Integers, iterations: Integers, folds: Integers, seed: int) -> Spreads:
    """Split natural-log residuals ``held_out`` [n] into run effects, drift and noise.

    ``groups``, ``iterations`` and ``folds`` are each row's execution, iteration and fold, [n]; ``seed`` is that of the
    bootstrap that tests the drift.
    """
    effects = grouped_median(held_out, groups, int(groups.max()) + 1)
    within = held_out - effects[groups]
    drift_variance = _drift_variance(within, groups, iterations, np.random.default_rng(seed))
    calibration = calibrate(leave_one_out(within, groups), groups, folds)
    return Spreads(float(np.sqrt(drift_variance)), effects, within, calibration)


def leave_one_out(within: Floats, groups: Integers) -> Floats:
    """Return ``within`` [n], residuals in executions ``groups`` [n], scaled as if each run effect ignored the row."""
    counts = np.bincount(groups)[groups]
    return np.asarray(within * counts / np.maximum(counts - 1, 1), np.float64)


def run_bounds(spreads: Spreads, groups: Integers, level: float) -> tuple[float, float]:
    """Return bounds, at probability ``level``, of a row's natural-log residual without its run effect.

    ``groups`` [n] are the executions of the rows in ``spreads``.
    """
    return bounds(leave_one_out(spreads.within, groups), groups, level)


def _sequences(within: Floats, groups: Integers, iterations: Integers) -> list[Floats]:
    limit = TAIL * max(1.4826 * float(np.median(np.abs(within))), 1e-9)
    clipped = np.clip(within, -limit, limit)
    order = np.lexsort((iterations, groups))
    return np.split(clipped[order], np.flatnonzero(np.diff(groups[order])) + 1)


def _variogram(sequences: list[Floats], lags: int) -> tuple[Floats, Floats]:
    """Return sums of squared differences and their counts by lag 1 … ``lags``, [number of sequences, lags] each."""
    sums, counts = np.zeros((len(sequences), lags)), np.zeros((len(sequences), lags))
    for i, values in enumerate(sequences):
        for k in range(1, min(lags, len(values) - 1) + 1):
            sums[i, k - 1] = ((values[k:] - values[:-k]) ** 2).sum()
            counts[i, k - 1] = len(values) - k
    return sums, counts


def _slope(sums: Floats, counts: Floats) -> float:
    """Return the drift variance per iteration: the slope over lag k of E (e[t+k] − e[t])² = 2·noise² + k·drift².

    ``sums``, ``counts`` [executions, lags]: sum and number of the squared differences. 0 for fewer than 3 lags.
    """
    total = counts.sum(axis=0)
    lags = np.flatnonzero(total > 0) + 1.0
    if len(lags) < 3:
        return 0.0
    weights = total[total > 0]
    values = sums.sum(axis=0)[total > 0] / weights
    centred = lags - np.average(lags, weights=weights)
    return float((weights * centred * values).sum() / (weights * centred**2).sum())


def _drift_variance(within: Floats, groups: Integers, iterations: Integers, rng: np.random.Generator) -> float:
    """Return the variance per iteration of the random walk in residuals ``within`` [n]; 0 unless significant.

    ``groups``, ``iterations``: each row's execution and iteration, [n]; the test is at 97.5 %, by bootstrap.
    """
    sequences = _sequences(within, groups, iterations)
    if len(sequences) < FEWEST_SHOWN_TO_DRIFT:
        return 0.0
    sums, counts = _variogram(sequences, MOST_LAGS)
    draws = rng.integers(0, len(sequences), (RESAMPLES, len(sequences)))
    slopes = [_slope(sums[draw], counts[draw]) for draw in draws]
    return max(_slope(sums, counts), 0.0) if float(np.quantile(slopes, 0.025)) > 0 else 0.0


def mean_by_execution(values: Floats, groups: Integers) -> float:
    """Return the mean of ``values`` [n] in which every execution (``groups`` [n]) has the same total weight."""
    return float(np.average(values, weights=execution_weights(groups)))


# Measurements that the model does not explain: executions, iterations of an execution, and whole stages.


LEAST_REPORTED = float(np.log(1.5))
UNEVEN = 3.0  # times the typical stage's spread, above which a stage is reported as a whole
ENOUGH = 8
MOST = 100


class Measurements(NamedTuple):
    """Measurements of one metric, n rows of G executions.

    Attributes:
        metric, unit: name of the metric, and its unit as appended to a number in messages.
        names: names of the executions, [G].
        groups, iterations: execution index and iteration of each row, [n].
        logs: natural logarithm of the metric, [n].
    """

    metric: str
    unit: str
    names: list[str]
    groups: Integers
    iterations: Integers
    logs: Floats


def unexplained_entries(rows: Measurements, spreads: Spreads) -> list[dict[str, Any]]:
    """Return JSON entries of executions, stages and iterations that the model does not explain, at most 100.

    A stage is one iteration number in all executions. Each entry names its kind, metric and place, the factor of the
    measured over the expected value, and a text. An iteration's expected value includes its execution's effect. The
    factor of a stage is the 95 % quantile of its values over their 5 % quantile.
    """
    stages, scale = _stages(rows, spreads.within)
    entries = _executions(rows, spreads) + stages + _iterations(rows, spreads.within, scale)
    return sorted(entries, key=lambda entry: -abs(float(np.log(entry["factor"]))))[:MOST]


def _executions(rows: Measurements, spreads: Spreads) -> list[dict[str, Any]]:
    known = np.flatnonzero(~np.isnan(spreads.effects))
    centre = float(np.median(spreads.effects[known]))
    off = spreads.effects - centre
    limit = max(3.0 * 1.4826 * float(np.median(np.abs(off[known]))), LEAST_REPORTED)
    return [_execution(rows, int(g), float(np.exp(off[g]))) for g in known if abs(off[g]) > limit]


def _execution(rows: Measurements, group: int, factor: float) -> dict[str, Any]:
    name = rows.names[group]
    text = f"execution {name!r}: {_times(factor)} the {rows.metric} that its allocation explains, throughout"
    return {"kind": "execution", "metric": rows.metric, "execution": name, "factor": _round(factor), "text": text}


def _stages(rows: Measurements, within: Floats) -> tuple[list[dict[str, Any]], Floats]:
    """Return entries for iterations whose residuals ``within`` [n] vary far more, and rows' noise scale (ln), [n]."""
    size = int(rows.iterations.max()) + 1
    by_stage = 1.4826 * grouped_median(np.abs(within), rows.iterations, size)
    counts = np.bincount(rows.iterations, minlength=size)
    known = by_stage[counts > 0]
    typical = max(float(np.median(known)), 1e-6)
    uneven = (counts >= ENOUGH) & (np.nan_to_num(by_stage) > max(UNEVEN * typical, LEAST_REPORTED / 2))
    entries = [_stage(rows, int(stage)) for stage in np.flatnonzero(uneven)]
    return entries, np.where(uneven, by_stage, typical)[rows.iterations]


def _stage(rows: Measurements, stage: int) -> dict[str, Any]:
    values = np.exp(rows.logs[rows.iterations == stage])
    low, high = np.quantile(values, [0.05, 0.95])
    text = (
        f"iteration {stage}: {rows.metric} from {number(low)} to {number(high)}{rows.unit} over {len(values)} "
        "executions, far more than other iterations vary; neither allocation nor features explain it"
    )
    factor = _round(float(high / low))
    return {"kind": "stage", "metric": rows.metric, "iteration": stage, "factor": factor, "text": text}


def _iterations(rows: Measurements, within: Floats, scale: Floats) -> list[dict[str, Any]]:
    beyond = np.flatnonzero(np.abs(within) > np.maximum(TAIL * scale, LEAST_REPORTED))
    return [_iteration(rows, int(i), float(np.exp(within[i]))) for i in beyond]


def _iteration(rows: Measurements, row: int, factor: float) -> dict[str, Any]:
    name, iteration, value = rows.names[rows.groups[row]], int(rows.iterations[row]), float(np.exp(rows.logs[row]))
    text = (
        f"execution {name!r}, iteration {iteration}: {rows.metric} {number(value)}{rows.unit}, {_times(factor)} what "
        "its allocation and the pace of its run explain"
    )
    place = {"execution": name, "iteration": iteration, "factor": _round(factor), "text": text}
    return {"kind": "iteration", "metric": rows.metric} | place


def _times(factor: float) -> str:
    return f"{number(factor)} times"


def _round(factor: float) -> float:
    return float(f"{factor:.4g}")
