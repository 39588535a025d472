"""Conformal intervals: calibrated on executions that the model has not seen, with the coverage that they really have.

Source: Vovk et al., “Algorithmic Learning in a Random World”, 2005; cross-conformal prediction, Vovk 2015. Rows of one
execution move together, so folds and weights go by execution.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from workers.estimators.base import LEVEL, Floats, Integers

ENOUGH_EXECUTIONS = 20  # from which on the outer twentieth of the executions exists


class Offsets(NamedTuple):
    """Bounds of the log residual at ``level``, and the share of held-out rows within bounds made without them."""

    low: float
    high: float
    coverage: float
    level: float


def weighted_quantile(values: Floats, weights: Floats, probability: float) -> float:
    """The smallest of ``values`` [n] below or at which ``probability`` of the ``weights`` [n] lies."""
    order = np.argsort(values)
    cumulated = np.cumsum(weights[order])
    place = int(np.searchsorted(cumulated, probability * cumulated[-1] * (1 - 1e-12)))
    return float(values[order][min(place, len(values) - 1)])


def execution_weights(groups: Integers) -> Floats:
    """A weight per row [n], so that every execution weighs 1."""
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return 1.0 / counts[inverse]


def bounds(residuals: Floats, groups: Integers, level: float = LEVEL) -> tuple[float, float]:
    """Low and high offset of the log residual of a row of a new execution.

    With many executions the conformal quantiles; with fewer than twenty they don't exist, and Student's t over the
    spread of the executions is used.
    """
    executions = len(np.unique(groups))
    weights = execution_weights(groups)
    tail = (1 - level) / 2
    if executions < ENOUGH_EXECUTIONS:
        variance = float((weights * residuals**2).sum() / weights.sum())
        reach = float(stdtrit(max(executions - 1, 1), 1 - tail) * np.sqrt(variance))
        return -reach, reach
    inner = np.floor((executions + 1) * tail + 1e-9) / executions  # a new value is as likely at each of n + 1 ranks
    low = weighted_quantile(residuals, weights, inner)
    high = -weighted_quantile(-residuals, weights, inner)
    return min(low, 0.0), max(high, 0.0)


def calibrate(residuals: Floats, groups: Integers, folds: Integers, level: float = LEVEL) -> Offsets:
    """Bounds from all held-out ``residuals`` [n], and their coverage: each fold judged by bounds from the others."""
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
