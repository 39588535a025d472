"""Columns on a scale on which their effect is smooth: logarithms where they are positive, then standardised."""

from typing import Self

import numpy as np

from workers.estimators.base import Floats


class Encoder:
    """Fitted per column: logarithm if all its values are above 0, centre and scale; constant columns are dropped."""

    def fit(self, X: Floats) -> Self:
        """Learn from ``X`` [n, D]."""
        self.floor_ = X.min(axis=0)
        self.log_ = self.floor_ > 0
        logged = self._logged(X)
        self.centre_, scale = logged.mean(axis=0), logged.std(axis=0)
        self.kept_ = scale > 1e-12
        self.scale_ = np.where(self.kept_, scale, 1.0)
        return self

    def __call__(self, X: Floats) -> Floats:
        """``X`` [n, D] encoded, [n, number of columns that vary]."""
        encoded: Floats = ((self._logged(X) - self.centre_) / self.scale_)[:, self.kept_]
        return encoded

    def _logged(self, X: Floats) -> Floats:
        positive = np.maximum(X, np.maximum(self.floor_, 1e-300) * 1e-3)
        return np.where(self.log_, np.log(np.where(self.log_, positive, 1.0)), X)
