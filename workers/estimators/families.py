"""Regression families of domain models: parametric, composed, and non-parametric.

Shapes: n or m rows, R resources, F features, T terms of a linear model; y is the metric.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel
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
    replicate_variance,
    spread,
)

# Parametric families.


# Ernest: seconds as a non-negative sum of what a parallel computation consists of.
#
# Source: Venkataraman et al., “Ernest: Efficient Performance Prediction for Large-Scale Advanced Analytics”, NSDI 2016.


CLEARLY = 0.8
Weighting = Literal["relative", "absolute"]


def ernest_terms(machines: Floats, share: Floats | float = 1.0) -> Floats:
    """Return Ernest's design matrix [n, 4], columns 1, s/m, m, ln m, for m > 0 ``machines`` [n] and data ``share`` s.

    s is the size of the data relative to any reference, a scalar or [n].
    """
    return np.column_stack([np.ones_like(machines), share / machines, machines, np.log(machines)])


def ernest_parameters(terms: Floats, seconds: Floats, weighting: Weighting = "absolute") -> Floats:
    """Return the non-negative least squares coefficients [T] of ``seconds`` [n] on T ``terms`` [n, T].

    ``absolute`` minimises the squared error, as Ernest does; ``relative`` the squared relative error, which suits the
    mean absolute percentage error and small durations."""
    weights = 1 / seconds if weighting == "relative" else np.ones_like(seconds)
    scale = np.maximum(np.abs(terms * weights[:, None]).max(axis=0), 1e-300)
    theta, _ = nnls(terms * weights[:, None] / scale, seconds * weights, maxiter=100 * terms.shape[1])
    return np.asarray(theta / scale, np.float64)


class Ernest(Predictor):
    """Ernest's model: a non-negative combination of 1, s/m, m and ln m of each resource m, and a data size s.

    s is the first feature that is positive in all fitted rows; without one it is 1. If the metric's reciprocal fits
    clearly better, as a throughput's does, it is modelled instead. ``serial`` adds a term proportional to s: work on
    the data that more machines do not speed up.
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
        fits = [
            (
                sign,
                ernest_parameters(
                    terms, np.exp(np.clip((sign * cells.logs), -LARGEST_LOG, LARGEST_LOG)), self.weighting
                ),
            )
            for sign in (1.0, -1.0)
        ]
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

    @staticmethod
    def _logs(terms: Floats, theta: Floats) -> Floats:
        return np.log(np.maximum(terms @ theta, 1e-26))


# The naive model: a constant.


class Mean(Predictor):
    """Constant model: the geometric mean of the metric over the distinct inputs; the reference for other families."""

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
    """Ridge regression of ln y on the encoded inputs; with ``degree`` 2 also on their squares and pairwise products.

    The fit is by iteratively reweighted least squares (Huber 1964), so that single disturbed executions have bounded
    influence. ``ridge`` is the penalty's weight.
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
    """Return the number of coefficients of a ``LogLinear`` model of ``width`` inputs and ``degree`` 1 or 2."""
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


# Composed families: one with parametric extrapolation, and a blend.


Make = Callable[[Inputs], Estimator]


class Guided(Estimator):
    """A flexible family f inside each input's fitted range; outside, its value at the boundary is scaled by a model g.

    ln f(x) = ln f(clip(x)) + ln g(x) − ln g(clip(x)); g is ``Ernest`` with a serial term, fitted to the same rows.
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
        """Predict median and 90 % interval for ``X`` [m, R + F]; the interval widens with Ernest's correction."""
        inside = np.clip(X, self.low_, self.high_)
        within = self.flexible.predict(inside)
        moved = self._moved_share(X, inside)
        sd = np.log(within.high / within.mean) / NORMAL_90 + 0.25 * np.abs(moved)
        return from_logs(np.log(within.mean) + moved, sd)

    @override
    def median(self, X: Floats) -> Floats:
        inside = np.clip(X, self.low_, self.high_)
        logs = np.log(self.flexible.median(inside)) + self._moved_share(X, inside)
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    def _moved_share(self, X: Floats, inside: Floats) -> Floats:
        return np.log(self.guide_.median(X)) - np.log(self.guide_.median(inside))

    @override
    def frozen(self) -> Guided:
        return Guided(self.inputs, self.flexible.frozen())


class Blend(Estimator):
    """Geometric mean of the medians of several families (``members``), with the mean of their deviations of ln y."""

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


# Non-parametric families: Gaussian processes and gradient boosting.


# Gaussian processes on the log metric, or on the residuals of a parametric family.


Shape = Literal["smooth", "two_scale"]
SEARCH_ROWS = 180  # most inputs for the search of hyper-parameters
SEARCH_STEPS = 40
CHUNK = 4_096


class GaussianProcess(Estimator):
    """Gaussian process on ln y over the encoded inputs, by automatic relevance determination: a length scale per input.

    Args:
        inputs: names of the columns.
        shape: ``smooth``, a Matérn 5/2 kernel; ``two_scale``, a squared exponential plus a short-range Matérn 3/2.
        trend: constructor of a parametric family whose residuals are modelled, and to which predictions return outside
            the fitted range; None: a constant.
        seed: seed of the random subset of inputs: at most 180 for the search, ``inputs.most_cells`` for conditioning.
        kernel: kernel with hyper-parameters; None: they are searched.
    """

    def __init__(
        self,
        inputs: Inputs,
        shape: Shape = "smooth",
        trend: Callable[[Inputs], Estimator] | None = None,
        seed: int = 0,
        kernel: Kernel | None = None,
    ) -> None:
        self.inputs, self.shape, self.trend, self.seed, self.kernel = inputs, shape, trend, seed, kernel
        base = "gaussian_process" if shape == "smooth" else "two_scale_gaussian_process"
        self.name = base if trend is None else f"{trend(inputs).name}_{base}"

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        self.inputs.check(X)
        logs = np.log(y)
        self.trend_ = None if self.trend is None else self.trend(self.inputs).fit(X, y, groups)
        cells = collapse(X, logs, groups)
        self.encoder_ = Encoder().fit(cells.X)
        Z, target = self.encoder_(cells.X), cells.logs - self._trend_logs(cells.X)
        if Z.shape[1] == 0:
            Z = np.zeros((len(target), 1))
        self.centre_, self.scale_ = float(target.mean()), max(float(target.std()), 1e-6)
        target = (target - self.centre_) / self.scale_
        # the median of c executions has π/2 times the variance of their mean
        noise = np.where(cells.counts > 1, np.pi / 2, 1.0) / cells.counts * replicate_variance(X, logs, groups)
        self._condition(Z, target, noise / self.scale_**2 + 1e-8)
        return self

    @override
    def predict(self, X: Floats) -> Prediction:
        Z = self.encoder_(X)
        Z = Z if Z.shape[1] else np.zeros((len(X), 1))
        parts = [self.process_.predict(Z[i : i + CHUNK], return_std=True) for i in range(0, len(Z), CHUNK)]
        mean = np.concatenate([np.empty(0), *(m for m, _ in parts)])
        sd = np.concatenate([np.empty(0), *(s for _, s in parts)])
        return from_logs(self._trend_logs(X) + self.centre_ + self.scale_ * mean, self.scale_ * sd)

    @override
    def median(self, X: Floats) -> Floats:
        Z = self.encoder_(X)
        Z = Z if Z.shape[1] else np.zeros((len(X), 1))
        parts = [self.process_.predict(Z[i : i + CHUNK]) for i in range(0, len(Z), CHUNK)]
        logs = self._trend_logs(X) + self.centre_ + self.scale_ * np.concatenate([np.empty(0), *parts])
        return np.exp(np.clip(logs, -LARGEST_LOG, LARGEST_LOG))

    @override
    def frozen(self) -> GaussianProcess:
        trend = getattr(self, "trend_", None)
        again = self.trend if trend is None else (lambda _: trend.frozen())
        return GaussianProcess(self.inputs, self.shape, again, self.seed, getattr(self, "kernel_", self.kernel))

    def _trend_logs(self, X: Floats) -> Floats:
        return np.zeros(len(X)) if self.trend_ is None else np.log(self.trend_.median(X))

    def _condition(self, Z: Floats, target: Floats, noise: Floats) -> None:
        chosen = np.random.default_rng(self.seed).permutation(len(Z))
        if self.kernel is None or len(self.kernel.theta) != len(_kernel(self.shape, Z.shape[1]).theta):
            few = chosen[:SEARCH_ROWS]
            search = GaussianProcessRegressor(_kernel(self.shape, Z.shape[1]), alpha=noise[few], optimizer=_search)
            with warnings.catch_warnings():  # a length scale at its bound means an input without influence
                warnings.simplefilter("ignore", ConvergenceWarning)
                self.kernel_ = search.fit(Z[few], target[few]).kernel_
        else:
            self.kernel_ = self.kernel
        many = np.sort(chosen[: self.inputs.most_cells])
        self.process_ = GaussianProcessRegressor(self.kernel_, alpha=noise[many], optimizer=None)
        self.process_.fit(Z[many], target[many])


def _search(objective: Callable[..., Any], start: Floats, bounds: Floats) -> tuple[Floats, float]:
    """Minimise ``objective``, which returns value and gradient [p], in at most 40 steps of L-BFGS-B.

    ``start`` [p]: first arguments; ``bounds`` [p, 2]. Returns the best arguments [p] and their value.
    """
    solution = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": SEARCH_STEPS})
    return solution.x, float(solution.fun)


def _kernel(shape: Shape, width: int) -> Kernel:
    scales, bounds, sizes = np.ones(width), (1e-2, 1e3), (1e-3, 1e3)
    noise = WhiteKernel(1e-2, (1e-6, 1.0))
    if shape == "smooth":
        return ConstantKernel(1.0, sizes) * Matern(scales, bounds, nu=2.5) + noise
    trend = ConstantKernel(1.0, sizes) * RBF(2.0 * scales, bounds)
    return trend + ConstantKernel(0.1, (1e-4, 1e3)) * Matern(0.5 * scales, bounds, nu=1.5) + noise


# Gradient-boosted trees on the log metric, monotone where the data indicate it.


CLEAR = 0.9  # least rank correlation for a monotonicity constraint


class GradientBoosting(Predictor):
    """Histogram gradient boosting of ln y (Friedman 2001; Ke et al. 2017) by ``rounds`` trees.

    The prediction is monotone in each input whose absolute rank correlation with ln y is at least 0.9.
    """

    name = "gradient_boosting"

    def __init__(self, inputs: Inputs, rounds: int = 80, seed: int = 0) -> None:
        self.inputs, self.rounds, self.seed = inputs, rounds, seed

    @override
    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
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

    @override
    def predict(self, X: Floats) -> Prediction:
        return from_logs(np.asarray(self.model_.predict(X), np.float64), self.sd_)

    @override
    def frozen(self) -> GradientBoosting:
        return GradientBoosting(self.inputs, self.rounds, self.seed)


def _direction(column: Floats, logs: Floats) -> int:
    """Return the sign (−1 or 1) of a column's Spearman correlation with ``logs`` if that is at least 0.9, else 0."""
    if np.ptp(column) == 0 or np.ptp(logs) == 0:
        return 0
    correlation = float(np.corrcoef(rankdata(column), rankdata(logs))[0, 1])
    return int(np.sign(correlation)) if abs(correlation) >= CLEAR else 0
