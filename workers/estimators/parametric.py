"""Families of parametric form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal, Self

import numpy as np
from scipy.optimize import nnls
from typing_extensions import override

from workers.estimators.base import (
    LARGEST_LOG,
    NORMAL_90,
    Encoder,
    Estimator,
    Floats,
    Inputs,
    Integers,
    Prediction,
    Predictor,
    collapse,
    from_logs,
    spread,
)

# Ernest: seconds as a non-negative sum of what a parallel computation consists of.
#
# Source: Venkataraman et al., “Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics”, NSDI 2016.


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

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
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

    @override
    def predict(self, X: Floats) -> Prediction:
        return from_logs(self.sign_ * self._logs(self._terms(X), self.theta_), self.sd_)

    @override
    def frozen(self) -> Ernest:
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


# The naive model: what was measured on average, whatever the allocation.


class Mean(Predictor):
    """Geometric mean over the distinct inputs; the yardstick of every other family."""

    name = "mean"

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.log_mean_ = float(cells.logs.mean())
        self.sd_ = spread(cells.logs - self.log_mean_, 1)
        return self

    @override
    def predict(self, X: Floats) -> Prediction:
        return from_logs(np.full(len(X), self.log_mean_), self.sd_)

    @override
    def frozen(self) -> Mean:
        return Mean(self.inputs)


# Power laws: the logarithm of the metric as a polynomial of the logarithms of the inputs.


class LogLinear(Predictor):
    """Ridge regression of log y on the encoded inputs; with degree 2 also on their products.

    Robust: iteratively reweighted (Huber 1964), so that single disturbed executions don't bend it.
    """

    def __init__(self, inputs: Inputs, degree: int = 1, ridge: float = 1e-3) -> None:
        self.inputs, self.degree, self.ridge = inputs, degree, ridge
        self.name = "log_linear" if degree == 1 else "log_quadratic"

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        self.inputs.check(X)
        cells = collapse(X, np.log(y), groups)
        self.encoder_ = Encoder().fit(cells.X)
        terms = self._terms(cells.X)
        self.theta_ = _huber(terms, cells.logs, np.sqrt(cells.counts), self.ridge)
        self.sd_ = spread(terms @ self.theta_ - cells.logs, terms.shape[1])
        return self

    @override
    def predict(self, X: Floats) -> Prediction:
        return from_logs(self._terms(X) @ self.theta_, self.sd_)

    @override
    def frozen(self) -> LogLinear:
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


# Families made of families: one that keeps its form beyond what was seen, and the blend of several.


Make = Callable[[Inputs], Estimator]


class Guided(Estimator):
    """A flexible family within the bounds of what was seen; beyond them its value at the bound, moved as Ernest moves.

    log f(x) = log f(clip(x)) + log g(x) − log g(clip(x)), g being Ernest with a serial part, fitted to the same rows.
    """

    def __init__(self, inputs: Inputs, flexible: Estimator) -> None:
        self.inputs, self.flexible = inputs, flexible
        self.name = flexible.name

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        self.low_, self.high_ = X.min(axis=0), X.max(axis=0)
        self.flexible.fit(X, y, groups)
        self.guide_ = Ernest(self.inputs, serial=True).fit(X, y, groups)
        return self

    def predict(self, X: Floats) -> Prediction:
        """The interval widens with how far the guide had to move the prediction."""
        inside = np.clip(X, self.low_, self.high_)
        within = self.flexible.predict(inside)
        moved = self._moved(X, inside)
        sd = np.log(within.high / within.mean) / NORMAL_90 + 0.25 * np.abs(moved)
        return from_logs(np.log(within.mean) + moved, sd)

    @override
    def median(self, X: Floats) -> Floats:
        inside = np.clip(X, self.low_, self.high_)
        logs = np.log(self.flexible.median(inside)) + self._moved(X, inside)
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    def _moved(self, X: Floats, inside: Floats) -> Floats:
        return np.log(self.guide_.median(X)) - np.log(self.guide_.median(inside))

    @override
    def frozen(self) -> Guided:
        return Guided(self.inputs, self.flexible.frozen())


class Blend(Estimator):
    """Geometric mean of several families: their independent errors cancel."""

    def __init__(self, inputs: Inputs, members: Sequence[Estimator]) -> None:
        self.inputs, self.members = inputs, tuple(members)
        self.name = "blend"

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        for member in self.members:
            member.fit(X, y, groups)
        return self

    @override
    def predict(self, X: Floats) -> Prediction:
        parts = [member.predict(X) for member in self.members]
        sd = np.mean([np.log(part.high / part.mean) for part in parts], axis=0) / NORMAL_90
        return from_logs(np.mean([np.log(part.mean) for part in parts], axis=0), sd)

    @override
    def median(self, X: Floats) -> Floats:
        return np.exp(np.mean([np.log(member.median(X)) for member in self.members], axis=0))

    @override
    def frozen(self) -> Blend:
        return Blend(self.inputs, [member.frozen() for member in self.members])
