"""Families without a form: Gaussian processes and gradient boosting."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from scipy.optimize import minimize
from scipy.stats import rankdata
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, Matern, WhiteKernel
from typing_extensions import override

from workers.estimators.base import (
    LARGEST_LOG,
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

# Gaussian processes on the logarithm of the metric, alone or on what a parametric family leaves over.


Shape = Literal["smooth", "two_scale"]
SEARCH_ROWS = 180  # the hyper-parameters are searched on at most so many inputs
SEARCH_STEPS = 40
CHUNK = 4_096


class GaussianProcess(Estimator):
    """Automatic relevance determination over the encoded inputs.

    ``smooth`` is one Matérn 5/2 kernel; ``two_scale`` adds a short-range Matérn 3/2 to a long-range squared
    exponential, for a smooth trend with local structure. ``trend`` gives the parametric family whose residuals are
    modelled: beyond what was seen the prediction then returns to that family, not to a constant.
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
    """Maximise the marginal likelihood over the log hyper-parameters, in a bounded number of steps."""
    found = minimize(objective, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": SEARCH_STEPS})
    return found.x, float(found.fun)


def _kernel(shape: Shape, width: int) -> Kernel:
    scales, bounds, sizes = np.ones(width), (1e-2, 1e3), (1e-3, 1e3)
    noise = WhiteKernel(1e-2, (1e-6, 1.0))
    if shape == "smooth":
        return ConstantKernel(1.0, sizes) * Matern(scales, bounds, nu=2.5) + noise
    trend = ConstantKernel(1.0, sizes) * RBF(2.0 * scales, bounds)
    return trend + ConstantKernel(0.1, (1e-4, 1e3)) * Matern(0.5 * scales, bounds, nu=1.5) + noise


# Gradient-boosted trees on the logarithm of the metric, monotone where the data say so.


CLEAR = 0.9  # rank correlation from which on a monotone constraint is justified


class GradientBoosting(Predictor):
    """Histogram gradient boosting (Friedman 2001; Ke et al. 2017)."""

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
    """−1, 0 or 1: the sign of a clear rank correlation (Spearman), else no constraint."""
    if np.ptp(column) == 0 or np.ptp(logs) == 0:
        return 0
    correlation = float(np.corrcoef(rankdata(column), rankdata(logs))[0, 1])
    return int(np.sign(correlation)) if abs(correlation) >= CLEAR else 0
