"""Weights of families that together err least: at least 0, 1 together (Breiman, “Stacked regressions”, 1996)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linprog

from app.kinds.forecasting.series import Floats, unscaled
from workers.estimators.forecasting.told import Told

LEAST = 0.01


def weighed(families: Mapping[str, Told], folds: Sequence[int]) -> Floats:
    """Weights by which counts of some folds are told with the least mean absolute error, [F] in order.

    They are the multipliers of that linear programme's dual, which has as few constraints as there are families.
    """
    told, came = _counts(families, folds)
    rows, count = told.shape
    scale = max(float(came.mean()), 1e-9)
    bounds = [(-1.0, 1.0)] * rows + [(None, None)]
    limits = np.hstack([told.T / scale, np.ones((count, 1))])
    found = linprog(-np.append(came / scale, 1.0), A_ub=limits, b_ub=np.zeros(count), bounds=bounds, method="highs")
    if found.x is None:
        return np.full(count, 1.0 / count)
    weights = np.where(-found.ineqlin.marginals < LEAST, 0.0, -found.ineqlin.marginals)
    return np.asarray(weights / weights.sum(), np.float64)


def cross_fitted(families: Mapping[str, Told]) -> Told:
    """What families tell together of each fold, by the weights of the others."""
    first = next(iter(families.values()))
    folds, medians = range(len(first.came)), list[Floats]()
    for fold in folds:
        weights = weighed(families, [one for one in folds if one != fold])
        medians.append(np.log1p(_counts(families, [fold])[0] @ weights / first.unit))
    return Told(medians, first.came, first.unit)


def _counts(families: Mapping[str, Told], folds: Sequence[int]) -> tuple[Floats, Floats]:
    """What each told of some folds, [n, F], and what came, [n]."""
    each = [np.concatenate([one.medians[fold] for fold in folds]) for one in families.values()]
    first = next(iter(families.values()))
    came = np.concatenate([first.came[fold] for fold in folds])
    return unscaled(np.stack(each, axis=1), first.unit), unscaled(came, first.unit)
