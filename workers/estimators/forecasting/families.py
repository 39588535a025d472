"""Forecasting families: fitting, errors in a back-test, and stacking.

Shapes: m intervals of a fold, n of several folds, F families, T trees of N nodes. Scaled: ln(1 + count / unit).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from scipy.optimize import linprog
from sklearn.ensemble import GradientBoostingRegressor

from app.kinds.forecasting.answer import LEVEL, Forward
from app.kinds.forecasting.families import LEAF, Arima, Boosting, Last, Seasonal, Trees, features
from app.kinds.forecasting.series import Floats, Series, calendar, seasons, unscale

ARIMA, GRU, HYBRID, BOOSTING = "arima", "gru", "arima_gru", "gradient_boosting"
STACKED = "stacked"
LAST, DAY_BEFORE, WEEK_BEFORE = "last_value", "day_before", "week_before"


class FitTask(NamedTuple):
    """A fitting task: the series, the horizons in intervals, the seed, and the names of the families to try."""

    series: Series
    horizons: tuple[int, ...]
    seed: int
    names: Collection[str]


class Family(NamedTuple):
    """``fit`` returns a fitted family, given a task and the families fitted before; ``needs``: its fewest intervals."""

    fit: Callable[[FitTask, dict[str, Forward]], Forward]
    needs: int


def _arima(task: FitTask, _: dict[str, Forward]) -> Forward:

    return fit_arima(task.series, task.horizons)


def _gru(task: FitTask, _: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.gru import fit_gru

    return fit_gru(task.series, task.horizons, task.seed)


def _hybrid(task: FitTask, fitted: dict[str, Forward]) -> Forward:
    from workers.estimators.forecasting.gru import fit_gru

    return fit_gru(task.series, task.horizons, task.seed, cast("Arima", fitted[ARIMA]))


def _boosting(task: FitTask, _: dict[str, Forward]) -> Forward:

    return fit_boosting(task.series, task.horizons, task.seed)


FAMILIES = {
    LAST: Family(lambda request, _: Last(request.horizons), 1),
    ARIMA: Family(_arima, 100),
    GRU: Family(_gru, 500),
    HYBRID: Family(_hybrid, 500),
    BOOSTING: Family(_boosting, 500),
}

QUICK = (LAST, DAY_BEFORE, WEEK_BEFORE, ARIMA)
ALL = (*QUICK, BOOSTING, GRU, HYBRID)
SIMPLICITY = (*ALL, STACKED)
"""Families in order of complexity: no fit; a few coefficients; trees; networks; networks on an ARIMA's
residuals; and a weighted sum of all these."""


def fit_families(task: FitTask, counts: int) -> dict[str, Forward]:
    """Fit all families in ``task.names`` that a series is long enough for; return them by name.

    Args:
        task: series, horizons (in intervals), seed and names.
        counts: number of intervals that decides which families are fitted, the same for all origins of a back-test.
    """
    forwards: dict[str, Forward] = {}
    for name, season in zip((DAY_BEFORE, WEEK_BEFORE), seasons(counts, task.series.seconds), strict=False):
        if name in task.names:
            forwards[name] = Seasonal(task.horizons, season)
    for name, family in FAMILIES.items():
        if counts >= family.needs and name in task.names:
            forwards[name] = family.fit(task, forwards)
    return forwards


# ARIMA (statsmodels) on the residuals of a daily and weekly course.


ORDERS = ((1, 0, 1), (2, 0, 1), (3, 0, 2))


def fit_arima(series: Series, horizons: tuple[int, ...]) -> Arima:
    """Fit an ARIMA (order by AIC) to scaled counts without daily and weekly course; ``horizons`` are in intervals."""
    known = seasons(len(series.counts), series.seconds)
    dated, values = calendar(series.times, known), series.scaled
    course = np.asarray(np.linalg.lstsq(dated, values, rcond=None)[0], np.float64)
    ar, ma = _fit_arima(values - dated @ course)
    return Arima(horizons, known, course, ar, ma)


def _fit_arima(rest: Floats) -> tuple[Floats, Floats]:
    from statsmodels.tsa.arima.model import ARIMA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fits = [ARIMA(rest, order=order, trend="n").fit() for order in ORDERS]
    best = min(fits, key=lambda one: float(one.aic))
    return np.asarray(best.arparams, np.float64), np.asarray(best.maparams, np.float64)


# Gradient boosting (scikit-learn) by absolute error, one model for each horizon.


ROUNDS, DEPTH, RATE, SUBSAMPLE, FEWEST = 200, 4, 0.05, 0.5, 20
MOST_ROWS = 10_000


def fit_boosting(series: Series, horizons: tuple[int, ...], seed: int) -> Boosting:
    """Fit gradient-boosted trees (absolute error) to the scaled counts, a model for each horizon (in intervals). Raises
    ValueError if the series is too short for a horizon."""
    known = seasons(len(series.counts), series.seconds)
    return Boosting(horizons, known, tuple(_trees(series, ahead, known, seed) for ahead in horizons))


def _trees(series: Series, ahead: int, known: tuple[int, ...], seed: int) -> Trees:
    origins = np.arange(min(max(known, default=0), len(series.counts) // 4), len(series.counts) - ahead)
    origins = origins[-MOST_ROWS:]
    model = GradientBoostingRegressor(
        loss="absolute_error",
        n_estimators=ROUNDS,
        max_depth=DEPTH,
        learning_rate=RATE,
        subsample=SUBSAMPLE,
        min_samples_leaf=FEWEST,
        max_features=0.5,
        random_state=seed,
    )
    model.fit(features(series, origins, ahead, known), series.scaled[origins + ahead])
    return export_trees(model)


def export_trees(model: GradientBoostingRegressor) -> Trees:
    """Return a fitted model as arrays [T, N] of T trees with N nodes, leaf values multiplied by the learning rate."""
    each = [tree.tree_ for tree in model.estimators_[:, 0]]
    most = max(tree.node_count for tree in each)

    def joined(name: str, fill: float, dtype: type) -> np.ndarray:
        rows = [np.asarray(getattr(tree, name)).reshape(-1) for tree in each]
        return np.stack([np.pad(row.astype(dtype), (0, most - len(row)), constant_values=fill) for row in rows])

    feature = np.maximum(joined("feature", 0, np.int64), 0)
    return Trees(
        np.asarray(model.init_.constant_, np.float64).reshape(1),
        joined("children_left", LEAF, np.int64),
        joined("children_right", LEAF, np.int64),
        feature,
        joined("threshold", 0.0, np.float64),
        model.learning_rate * joined("value", 0.0, np.float64),
    )


# Medians of a family in a back-test, and their errors.


FEW = 5.0
"""Mean count per interval below which the median is often 0."""


class HorizonForecasts(NamedTuple):
    """One family's medians and actual values (``came``) at one horizon, by fold [m], scaled as ln(1 + count / unit)."""

    medians: list[Floats]
    came: list[Floats]
    unit: float

    def add(self, medians: Floats, came: Floats) -> None:
        """Append a fold's ``medians`` [m] and actual values ``came`` [m], both scaled as ln(1 + count / unit)."""
        self.medians.append(medians)
        self.came.append(came)

    def copy(self) -> HorizonForecasts:
        """Return a copy with lists of its own, to which folds can be added."""
        return HorizonForecasts([*self.medians], [*self.came], self.unit)

    @property
    def absolute(self) -> list[Floats]:
        """Absolute errors [m] of each fold, in counts per interval."""
        folds = zip(self.medians, self.came, strict=True)
        return [np.abs(unscale(medians, self.unit) - unscale(came, self.unit)) for medians, came in folds]

    def error(self, folds: Sequence[int] | None = None) -> float:
        """Return the mean absolute error, in counts per interval, over the folds of these indices (None: all)."""
        each = self.absolute
        return float(np.concatenate(each if folds is None else [each[fold] for fold in folds]).mean())

    def errors(self, folds: Sequence[int]) -> Floats:
        """Return the calibration [4] from these folds: the interval's two offsets, the mean's slope and intercept."""
        medians, came = (np.concatenate([part[fold] for fold in folds]) for part in (self.medians, self.came))
        return errors(medians, came, self.unit)


def errors(medians: Floats, came: Floats, unit: float) -> Floats:
    """Calibrate a family from its ``medians`` [m] and actual values ``came`` [m], both ln(1 + count / ``unit``).

    Returns an array [4]: offsets of the median for the lower and upper bound of the 90 % interval (scaled), slope and
    intercept of the mean (counts). The mean is a multiple of the median, which keeps its daily and weekly course. Below
    5 counts per interval the median is mostly 0; the mean is then a regression line of the counts on the median.
    """
    apart, count = np.sort(came - medians), len(came)
    outside = (1 - LEVEL) / 2 * (count + 1)
    low, high = apart[max(int(np.floor(outside)) - 1, 0)], apart[min(int(np.ceil(count + 1 - outside)) - 1, count - 1)]
    counted, expected = unscale(came, unit), unscale(medians, unit)
    ratio = counted.mean() / max(expected.mean(), 1e-9)
    if counted.mean() >= FEW:
        return np.array([low, high, ratio, 0.0])
    apart_from_mean = expected - expected.mean()
    slope = max(float((apart_from_mean * counted).sum() / max((apart_from_mean**2).sum(), 1e-9)), 0.0)
    added = counted.mean() - slope * expected.mean()
    return np.array([low, high, slope, added] if added >= 0 else [low, high, ratio, 0.0])


# Stacking weights of least error: non-negative, with sum 1 (Breiman, “Stacked regressions”, 1996).


LEAST = 0.01


def stacking_weights(families: Mapping[str, HorizonForecasts], folds: Sequence[int]) -> Floats:
    """Return F families' stacking weights [F] (≥ 0, sum 1) of least mean absolute error of counts in some folds.

    They are the Lagrange multipliers of the dual linear programme, which has only one constraint per family. Weights
    below 0.01 become 0; all are equal where the solver fails.
    """
    counts, came = _counts(families, folds)
    rows, count = counts.shape
    scale = max(float(came.mean()), 1e-9)
    bounds = [(-1.0, 1.0)] * rows + [(None, None)]
    limits = np.hstack([counts.T / scale, np.ones((count, 1))])
    solution = linprog(-np.append(came / scale, 1.0), A_ub=limits, b_ub=np.zeros(count), bounds=bounds, method="highs")
    if solution.x is None:
        return np.full(count, 1.0 / count)
    weights = np.where(-solution.ineqlin.marginals < LEAST, 0.0, -solution.ineqlin.marginals)
    return np.asarray(weights / weights.sum(), np.float64)


def cross_fitted(families: Mapping[str, HorizonForecasts]) -> HorizonForecasts:
    """Return a weighted sum of the families' medians in each fold, weights fitted to other folds, and actual values."""
    first = next(iter(families.values()))
    folds, medians = range(len(first.came)), list[Floats]()
    for fold in folds:
        weights = stacking_weights(families, [one for one in folds if one != fold])
        medians.append(np.log1p(_counts(families, [fold])[0] @ weights / first.unit))
    return HorizonForecasts(medians, first.came, first.unit)


def _counts(families: Mapping[str, HorizonForecasts], folds: Sequence[int]) -> tuple[Floats, Floats]:
    """Return the medians of F families in some folds, [n, F], and the actual values [n], both in counts."""
    each = [np.concatenate([one.medians[fold] for fold in folds]) for one in families.values()]
    first = next(iter(families.values()))
    came = np.concatenate([first.came[fold] for fold in folds])
    return unscale(np.stack(each, axis=1), first.unit), unscale(came, first.unit)
