"""The naive model: what was measured on average, whatever the allocation."""

from typing import Self

import numpy as np

from workers.estimators.base import Floats, Inputs, Integers, Prediction, Predictor, from_logs, spread
from workers.estimators.replicates import collapse


class Mean(Predictor):
    """Geometric mean over the distinct inputs; the yardstick of every other family."""

    name = "mean"

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.log_mean_ = float(cells.logs.mean())
        self.sd_ = spread(cells.logs - self.log_mean_, 1)
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``."""
        return from_logs(np.full(len(X), self.log_mean_), self.sd_)

    def frozen(self) -> "Mean":
        """See ``base``."""
        return Mean(self.inputs)
