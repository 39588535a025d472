"""Power laws: the logarithm of the metric as a polynomial of the logarithms of the inputs."""

import itertools
from typing import Self

import numpy as np

from workers.estimators.base import Floats, Inputs, Integers, Prediction, Predictor, from_logs, spread
from workers.estimators.encoding import Encoder
from workers.estimators.replicates import collapse


class LogLinear(Predictor):
    """Ridge regression of log y on the encoded inputs; with degree 2 also on their products.

    Robust: iteratively reweighted (Huber 1964), so that single disturbed executions don't bend it.
    """

    def __init__(self, inputs: Inputs, degree: int = 1, ridge: float = 1e-3) -> None:
        self.inputs, self.degree, self.ridge = inputs, degree, ridge
        self.name = "log_linear" if degree == 1 else "log_quadratic"

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.encoder_ = Encoder().fit(cells.X)
        terms = self._terms(cells.X)
        self.theta_ = _huber(terms, cells.logs, np.sqrt(cells.counts), self.ridge)
        self.sd_ = spread(terms @ self.theta_ - cells.logs, terms.shape[1])
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``."""
        return from_logs(self._terms(X) @ self.theta_, self.sd_)

    def frozen(self) -> "LogLinear":
        """See ``base``."""
        return LogLinear(self.inputs, self.degree, self.ridge)

    def _terms(self, X: Floats) -> Floats:
        Z = self.encoder_(X)
        products = itertools.combinations_with_replacement(range(Z.shape[1]), 2) if self.degree > 1 else ()
        return np.column_stack([np.ones(len(Z)), Z, *(Z[:, i] * Z[:, j] for i, j in products)])


def parameters(width: int, degree: int) -> int:
    """Number of coefficients of a model with ``width`` inputs."""
    return 1 + width + (width * (width + 1) // 2 if degree > 1 else 0)


def _huber(terms: Floats, logs: Floats, weights: Floats, ridge: float, rounds: int = 8) -> Floats:
    penalty = ridge * np.eye(terms.shape[1])
    penalty[0, 0] = 0.0
    robust: Floats = np.ones_like(logs)
    theta: Floats = np.zeros(terms.shape[1])
    for _ in range(rounds):
        w = weights * robust
        normal = terms.T @ (terms * w[:, None]) + penalty
        theta = np.asarray(np.linalg.lstsq(normal, terms.T @ (w * logs), rcond=None)[0], np.float64)
        residual = np.abs(logs - terms @ theta)
        limit = 1.5 * 1.4826 * max(float(np.median(residual)), 1e-6)
        robust = np.minimum(1.0, limit / np.maximum(residual, 1e-12))
    return np.asarray(theta, np.float64)
