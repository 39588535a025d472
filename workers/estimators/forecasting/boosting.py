"""Gradient boosting (scikit-learn), one model for each horizon, of the least absolute error."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor

from app.kinds.forecasting.boosting import LEAF, Boosting, Trees, features
from app.kinds.forecasting.series import Series, scaled, seasons

ROUNDS, DEPTH, RATE, SUBSAMPLE, FEWEST = 200, 4, 0.05, 0.5, 20
MOST_ROWS = 10_000


def fit_boosting(series: Series, horizons: tuple[int, ...], seed: int) -> Boosting:
    """Trees of one set of origins by horizon."""
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
    model.fit(features(series, origins, ahead, known), scaled(series.counts)[origins + ahead])
    return exported(model)


def exported(model: GradientBoostingRegressor) -> Trees:
    """As plain arrays."""
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
