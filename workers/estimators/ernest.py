"""Ernest: seconds as a non-negative sum of what a parallel computation consists of.

Source: Venkataraman et al., “Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics”, NSDI 2016.
"""

from typing import Literal, Self

import numpy as np
from scipy.optimize import nnls

from workers.estimators.base import LARGEST_LOG, Floats, Inputs, Integers, Prediction, Predictor, from_logs, spread
from workers.estimators.replicates import collapse

CLEARLY = 0.8
Weighting = Literal["relative", "absolute"]


def ernest_terms(machines: Floats, share: Floats | float = 1.0) -> Floats:
    """[1, s/m, m, ln m] for machines m [n] (greater than 0) and data share s [n] → [n, 4]."""
    return np.column_stack([np.ones_like(machines), share / machines, machines, np.log(machines)])


def ernest_parameters(terms: Floats, seconds: Floats, weighting: Weighting = "absolute") -> Floats:
    """Non-negative least squares θ [T] of ``seconds`` [n] on ``terms`` [n, T].

    ``absolute`` minimises the squared error, as published; ``relative`` the squared relative error, which serves the
    mean absolute percentage error and small durations.
    """
    weights = 1 / seconds if weighting == "relative" else np.ones_like(seconds)
    scale = np.maximum(np.abs(terms * weights[:, None]).max(axis=0), 1e-300)
    theta, _ = nnls(terms * weights[:, None] / scale, seconds * weights, maxiter=100 * terms.shape[1])
    return np.asarray(theta / scale, np.float64)


class Ernest(Predictor):
    """Ernest over any number of resources: 1, and per resource s/m, m and ln m; s is the first positive feature.

    A metric that behaves like a throughput (whose reciprocal fits clearly better) is modelled by its reciprocal.
    ``serial`` adds a term in s: a part of the work on the data that more machines don't speed up.
    """

    def __init__(self, inputs: Inputs, weighting: Weighting = "relative", *, serial: bool = False) -> None:
        self.inputs, self.weighting, self.serial = inputs, weighting, serial
        self.name = "serial_ernest" if serial else "ernest" if weighting == "relative" else "absolute_ernest"

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """See ``base``."""
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.floor_ = np.maximum(cells.X.min(axis=0), 1e-9)
        positive = np.flatnonzero(cells.X[:, len(self.inputs.resources) :].min(axis=0, initial=1.0) > 0)
        self.share_ = len(self.inputs.resources) + int(positive[0]) if len(positive) and self.inputs.features else None
        terms = self._terms(cells.X)
        fits = [(sign, self._solve(terms, sign * cells.logs)) for sign in (1.0, -1.0)]
        errors = [np.abs(self._logs(terms, theta) - sign * cells.logs).mean() for sign, theta in fits]
        self.sign_, self.theta_ = fits[1 if errors[1] < CLEARLY * errors[0] else 0]
        self.sd_ = spread(self.sign_ * self._logs(terms, self.theta_) - cells.logs, int((self.theta_ > 0).sum()))
        return self

    def predict(self, X: Floats) -> Prediction:
        """See ``base``."""
        return from_logs(self.sign_ * self._logs(self._terms(X), self.theta_), self.sd_)

    def frozen(self) -> "Ernest":
        """See ``base``."""
        return Ernest(self.inputs, self.weighting, serial=self.serial)

    def _terms(self, X: Floats) -> Floats:
        share = X[:, self.share_] if self.share_ is not None else 1.0
        blocks = [
            ernest_terms(np.maximum(X[:, r], self.floor_[r] * 1e-3), share) for r in range(len(self.inputs.resources))
        ]
        rest = [block[:, 1:] for block in blocks[1:]]
        if self.serial and self.share_ is not None:
            rest.append(X[:, [self.share_]])
        return np.hstack([blocks[0], *rest])

    def _solve(self, terms: Floats, logs: Floats) -> Floats:
        return ernest_parameters(terms, np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG)), self.weighting)

    @staticmethod
    def _logs(terms: Floats, theta: Floats) -> Floats:
        return np.log(np.maximum(terms @ theta, 1e-26))
