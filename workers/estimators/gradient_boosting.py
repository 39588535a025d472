"""Gradient-boosted trees on the logarithm of the metric, monotone where the data say so."""

from typing import Self

import numpy as np
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor

from workers.estimators.base import Floats, Inputs, Integers, Prediction, Predictor, from_logs, spread
from workers.estimators.replicates import collapse

CLEAR = 0.9  # rank correlation from which on a monotone constraint is justified


class GradientBoosting(Predictor):
    """Histogram gradient boosting (Friedman 2001; Ke et al. 2017)."""

    name = "gradient_boosting"

    def __init__(self, inputs: Inputs, rounds: int = 80, seed: int = 0) -> None:
        self.inputs, self.rounds, self.seed = inputs, rounds, seed

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.monotone_ = [_direction(column, cells.logs) for column in cells.X.T]
        self.model_ = HistGradientBoostingRegressor(
            loss="squared_error",
            learning_rate=0.15,
            max_iter=self.rounds,
            max_leaf_nodes=8,
            min_samples_leaf=max(2, len(cells.X) // 60),
            monotonic_cst=self.monotone_,
            early_stopping=False,
            random_state=self.seed,
        )
        self.model_.fit(cells.X, cells.logs, sample_weight=np.sqrt(cells.counts))
        self.sd_ = spread(self.model_.predict(cells.X) - cells.logs, len(cells.X) // 3)
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``."""
        return from_logs(np.asarray(self.model_.predict(X), np.float64), self.sd_)

    def frozen(self) -> "GradientBoosting":
        """See ``base``."""
        return GradientBoosting(self.inputs, self.rounds, self.seed)


def _direction(column: Floats, logs: Floats) -> int:
    """−1, 0 or 1: the sign of a clear rank correlation (Spearman), else no constraint."""
    if np.ptp(column) == 0 or np.ptp(logs) == 0:
        return 0
    correlation = float(np.corrcoef(rankdata(column), rankdata(logs))[0, 1])
    return int(np.sign(correlation)) if abs(correlation) >= CLEAR else 0
