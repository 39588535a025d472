"""What a change of allocation costs: the extra seconds of the iteration in which it happens, per resource."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.estimators.base import Floats

ENOUGH_CHANGES = 5
ROUNDS = 20


class ChangeCost(NamedTuple):
    """Seconds per resource [R], and whether they were measured [R] (else they are the spec's)."""

    seconds: Floats
    measured: NDArray[np.bool_]


def change_cost(seconds: Floats, expected: Floats, changed: Floats, stated: Floats) -> ChangeCost:
    """Regress ``seconds`` − ``expected`` [n] on which resources ``changed`` [n, R], robustly (Huber 1964).

    ``expected`` holds the model and the run effect; ``stated`` [R] is the spec's. A resource is measured if it changed
    at least five times and its standard error is small, against the estimate or the typical iteration.
    """
    excess = seconds - expected
    often = changed.sum(axis=0) >= ENOUGH_CHANGES
    if not often.any() or len(seconds) < 2 * ENOUGH_CHANGES:
        return ChangeCost(stated.copy(), np.zeros(len(stated), bool))
    terms = np.column_stack([np.ones(len(excess)), changed[:, often]])
    theta, error = _robust(terms, excess)
    small = 2 * error[1:] <= np.maximum(np.abs(theta[1:]), 0.05 * float(np.median(seconds)))
    measured = np.zeros(len(stated), bool)
    measured[np.flatnonzero(often)] = small
    found = stated.copy()
    found[measured] = np.maximum(theta[1:][small], 0.0)
    return ChangeCost(found, measured)


def _robust(terms: Floats, target: Floats) -> tuple[Floats, Floats]:
    """Coefficients [T] and their standard errors [T] (sandwich)."""
    weights: Floats = np.ones(len(target))
    theta: Floats = np.zeros(terms.shape[1])
    inverse: Floats = np.eye(terms.shape[1])
    for _ in range(ROUNDS):
        inverse = np.asarray(np.linalg.pinv(terms.T @ (terms * weights[:, None])), np.float64)
        theta = inverse @ (terms.T @ (weights * target))
        residual = np.abs(target - terms @ theta)
        limit = 1.345 * 1.4826 * max(float(np.median(residual)), 1e-9)
        weights = np.minimum(1.0, limit / np.maximum(residual, 1e-12))
    scores = terms * (weights * (target - terms @ theta))[:, None]
    return np.asarray(theta, np.float64), np.sqrt(np.diag(inverse @ (scores.T @ scores) @ inverse))
