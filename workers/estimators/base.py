"""Interface of the estimators, encoding of inputs, aggregation of replicates, and iteration effects.

Shapes: n or m rows, D columns, R resources, F features, c distinct inputs, I iteration bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.charts import text

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
LEVEL = 0.9
NORMAL_90 = 1.6448536269514722  # standard normal quantile at (1 + LEVEL) / 2
LARGEST_LOG = 60.0  # predictions are clipped to e^±60


class EstimationError(ValueError):
    """Raised if no domain model can be estimated; ``pointer`` is the JSON pointer of the faulty field, or empty."""

    def __init__(self, detail: str, pointer: str = "") -> None:
        self.pointer = pointer
        super().__init__(detail)


class TooLittleData(EstimationError):
    """Raised if the samples are too few for a domain model; users see it as a state of the workload, not as a failure.

    Attributes:
        needs, has: required and present amounts in words, for example “3 executions at 3 allocations” and “1 at 1”.
    """

    def __init__(self, needs: str, has: str, pointer: str = "/samples") -> None:
        self.needs, self.has = needs, has
        super().__init__(f"needs {needs}; has {has}", pointer)


class CriterionMissed(EstimationError):
    """Raised if one simulated iteration takes longer than the spec's criterion allows.

    Attributes:
        seconds: measured wall-clock duration of one simulated iteration, in seconds.
        allowed_seconds: the smaller of the criterion's two limits, in seconds.
    """

    def __init__(self, seconds: float, allowed_seconds: float, reason: str) -> None:
        self.seconds, self.allowed_seconds = seconds, allowed_seconds
        took, allowed = text.seconds(seconds), text.seconds(allowed_seconds)
        super().__init__(
            f"one simulated iteration takes {took}; the criterion allows {allowed} ({reason})", "/criterion"
        )


@dataclass(frozen=True)
class Inputs:
    """Names of the columns of the design matrix ``X`` [n, R + F]: n rows; R resources, then F features.

    Attributes:
        resources, features: the names, in the order of the columns.
        most_cells: largest number of distinct inputs on which a family of cubic cost (Gaussian process) is conditioned.
    """

    resources: tuple[str, ...]
    features: tuple[str, ...] = ()
    most_cells: int = 1_500

    @property
    def width(self) -> int:
        """Number of columns: R resources plus F features."""
        return len(self.resources) + len(self.features)

    def check(self, X: Floats) -> None:
        """Check that ``X`` has two dimensions and R + F columns.

        Raises:
            ValueError: ``X`` has another shape.
        """
        if X.ndim != 2 or X.shape[1] != self.width:
            raise ValueError(f"X must be [n, {self.width}] for {self.resources + self.features}; got {X.shape}")


class Prediction(NamedTuple):
    """Predicted median (``mean``) and bounds of the 90 % interval of n rows, [n] each, in the metric's unit."""

    mean: Floats
    low: Floats
    high: Floats


class Estimator(Protocol):
    """A regression family that predicts one positive metric from R resources and F features.

    Attributes:
        name: key of the family in reports.
    """

    name: str

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """Fit to inputs ``X`` [n, R + F], a positive metric ``y`` [n], and each row's execution index ``groups`` [n].

        Raises:
            ValueError: ``X`` has the wrong shape.
            LinAlgError, FloatingPointError: the family cannot be fitted to these rows.
        """
        ...

    def predict(self, X: Floats) -> Prediction:
        """Predict median and 90 % interval, [m] each in the metric's unit, for ``X`` [m, R + F]; after ``fit``."""
        ...

    def median(self, X: Floats) -> Floats:
        """Predict the median [m], in the metric's unit, for ``X`` [m, R + F]; after ``fit``."""
        ...

    def frozen(self) -> Estimator:
        """Return an unfitted copy that reuses the hyper-parameters found by ``fit``."""
        ...


class Predictor(Estimator, Protocol):
    """An estimator with a cheap ``predict``, from which its ``median`` is derived."""

    def median(self, X: Floats) -> Floats:
        """Predict the median [m], in the metric's unit, for ``X`` [m, R + F]: the ``mean`` of ``predict``."""
        return self.predict(X).mean


def from_logs(mean: Floats, sd: Floats | float) -> Prediction:
    """Return the prediction of a log-normal metric from ``mean`` [n] and deviation ``sd`` (scalar, [n]) of its ln."""
    centre = np.clip(mean, -LARGEST_LOG, LARGEST_LOG)
    half = NORMAL_90 * np.clip(sd, 0.0, 10.0)
    return Prediction(np.exp(centre), np.exp(centre - half), np.exp(centre + half))


def spread(residuals: Floats, parameters: int) -> float:
    """Return the standard deviation of natural-log residuals [n]; degrees of freedom n − ``parameters``, at least 1."""
    return float(np.sqrt((residuals**2).sum() / max(len(residuals) - parameters, 1)))


# Encoding of columns to a scale on which their effect is smooth.


class Encoder:
    """Encoding of each column of ``X``: natural logarithm if all fitted values are positive, then standardisation.

    Constant columns are dropped.
    """

    def fit(self, X: Floats) -> Self:
        """Learn minimum, centre and scale of each column of ``X`` [n, D]; return the encoder."""
        self.floor_ = X.min(axis=0)
        self.log_ = self.floor_ > 0
        logged = self._log_features(X)
        self.centre_, scale = logged.mean(axis=0), logged.std(axis=0)
        self.kept_ = scale > 1e-12
        self.scale_ = np.where(self.kept_, scale, 1.0)
        return self

    def __call__(self, X: Floats) -> Floats:
        """Return ``X`` [n, D] encoded, without the columns that were constant in ``fit``.

        In a logarithmic column, values below 0.1 % of the least fitted value are raised to it, so the result is finite.
        """
        encoded: Floats = ((self._log_features(X) - self.centre_) / self.scale_)[:, self.kept_]
        return encoded

    def _log_features(self, X: Floats) -> Floats:
        positive = np.maximum(X, np.maximum(self.floor_, 1e-300) * 1e-3)
        return np.where(self.log_, np.log(np.where(self.log_, positive, 1.0)), X)


# Robust aggregation of repeated measurements at one input, on which every family is fitted.


class Cells(NamedTuple):
    """Aggregates of c distinct inputs: inputs [c, D], median natural log of the metric, number of executions, [c]."""

    X: Floats
    logs: Floats
    counts: Floats


def grouped_median(values: Floats, index: Integers, size: int) -> Floats:
    """Return the median [size] of the ``values`` [n] at each ``index`` [n], 0 to ``size`` − 1; NaN without values."""
    order = np.lexsort((values, index))
    sorted_values = values[order]
    counts = np.bincount(index, minlength=size)
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    middles = np.full(size, np.nan)
    some = counts > 0
    low, high = starts[some] + (counts[some] - 1) // 2, starts[some] + counts[some] // 2
    middles[some] = (sorted_values[low] + sorted_values[high]) / 2
    return middles


def distinct(*columns: Floats | Integers) -> tuple[Integers, Integers]:
    """Return the index of the first occurrence of c distinct rows, [c], and each row's index among these c rows, [n].

    ``columns`` are [n] or [n, d] each, for n rows.
    """
    stacked = np.column_stack([np.asarray(c, np.float64) for c in columns])
    _, first, inverse = np.unique(stacked, axis=0, return_index=True, return_inverse=True)
    return first.astype(np.intp), inverse.reshape(-1).astype(np.intp)


def collapse(X: Floats, logs: Floats, groups: Integers) -> Cells:
    """Aggregate rows to one cell for each distinct row of ``X`` [n, D]: the median over executions of their medians.

    A run effect shifts all rows of an execution together, so an execution counts once per input, whatever its length.
    ``logs`` [n] are natural logarithms of the metric, ``groups`` [n] execution indices.
    """
    first, run_cell = distinct(X, groups)
    per_run = grouped_median(logs, run_cell, len(first))
    rows, cell = distinct(X[first])
    counts = np.bincount(cell, minlength=len(rows)).astype(np.float64)
    return Cells(X[first][rows], grouped_median(per_run, cell, len(rows)), counts)


def replicate_variance(X: Floats, logs: Floats, groups: Integers) -> float:
    """Return the robust variance of ln metric, ``logs`` [n], between executions at equal inputs, ``X`` [n, D].

    ``groups`` [n] are execution indices; 0 where no input was repeated.
    """
    first, run_cell = distinct(X, groups)
    per_run = grouped_median(logs, run_cell, len(first))
    rows, cell = distinct(X[first])
    centre = grouped_median(per_run, cell, len(rows))
    counts = np.bincount(cell, minlength=len(rows))
    repeated = counts[cell] > 1
    if not repeated.any():
        return 0.0
    correction = counts[cell][repeated] / (counts[cell][repeated] - 1)
    deviations = np.abs(per_run - centre[cell])[repeated] * np.sqrt(correction)
    return float((1.4826 * np.median(deviations)) ** 2)


# Iteration effects: a level for each iteration, and its elasticity to the allocation.
#
# Real iterative programs are not stationary: they load, warm up, save checkpoints, validate every n-th time. With a the
# level and e the elasticity of an iteration (bin), the model is
#
#     log y = a[bin] + e[bin] · f(execution, input),
#
# where f is the log duration of an execution relative to the levels. ``decompose`` estimates a, e and f together, by
# alternating robust fits; a family then learns f as a function of the input. Cross-validation chooses one of three
# forms: ``none`` (a = 0, e = 1), ``levels`` (e = 1) and ``elastic``.


Form = Literal["none", "levels", "elastic"]
ROUNDS = 8
PRIOR_SD = 0.5  # prior standard deviation of an elasticity, with mean 1


class Rows(NamedTuple):
    """n measurements: D inputs ``X`` [n, D], and natural log of the metric, execution index, iteration bin, [n] each.

    An iteration bin is a group of iterations that share one effect on the metric.
    """

    X: Floats
    logs: Floats
    groups: Integers
    bins: Integers

    def where(self, chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Rows:
        """Return the rows where the mask ``chosen`` [n] is true."""
        return Rows(self.X[chosen], self.logs[chosen], self.groups[chosen], self.bins[chosen])


class Stages(NamedTuple):
    """Level a and elasticity e, [I], of I bins in ln metric = a + e · f(execution, inputs); ``rows.logs`` are f."""

    level: Floats
    elasticity: Floats
    rows: Rows

    def compose(self, curve: Floats, bins: Integers) -> Floats:
        """Return the natural-log metric [n], level + elasticity · ``curve`` [n], of rows in iteration ``bins`` [n].

        ``curve`` is a family's natural-log prediction; bins beyond the last get the median level and elasticity.
        """
        level, elasticity = (np.append(part, np.median(part)) for part in (self.level, self.elasticity))
        bins = np.minimum(bins, len(self.level))
        return np.asarray(level[bins] + elasticity[bins] * curve, np.float64)


def decompose(rows: Rows, bins: int, form: Form) -> Stages:
    """Estimate a level and an elasticity for each iteration bin 0 to ``bins`` − 1, and ``rows`` without these effects.

    ``form``: ``none``, levels 0, elasticities 1 and the same rows; ``levels``, elasticities 1; ``elastic``, both
    estimated. In the last two cases the returned rows have one entry per execution and input.
    """
    if form == "none":
        return Stages(np.zeros(bins), np.ones(bins), rows)
    first, cell = distinct(rows.X, rows.groups)
    level, elasticity, effect = _alternate(rows, cell, len(first), bins, elastic=form == "elastic")
    residual = rows.logs - level[rows.bins] - elasticity[rows.bins] * effect[cell]
    level = _interpolate_gaps(_shrunk(level, residual, rows.bins, bins))
    left = Rows(rows.X[first], effect, rows.groups[first], np.zeros(len(first), np.intp))
    return Stages(level, _interpolate_gaps(elasticity), left)


def _alternate(rows: Rows, cell: Integers, cells: int, bins: int, *, elastic: bool) -> tuple[Floats, Floats, Floats]:
    logs, place = rows.logs, rows.bins
    level, elasticity = grouped_median(logs, place, bins), np.ones(bins)
    effect = grouped_median(logs - level[place], cell, cells)
    for _ in range(ROUNDS):
        if elastic:
            weight, noise = _weights(logs - level[place] - elasticity[place] * effect[cell])
            elasticity = _elasticity(logs - level[place], effect[cell], weight, place, bins, noise)
            slope = elasticity[place]
            over = np.bincount(cell, weight * slope * (logs - level[place]), cells)
            effect = over / (np.bincount(cell, weight * slope**2, cells) + 1e-6)
        else:
            effect = grouped_median(logs - level[place], cell, cells)
        shift = float(np.median(effect))
        effect = effect - shift
        level = grouped_median(logs - elasticity[place] * effect[cell], place, bins)
    return level, np.where(np.isnan(level), np.nan, elasticity), effect


def _weights(residual: Floats) -> tuple[Floats, float]:
    """Return the Huber weights [n] of ``residual`` [n], and its robust variance (from the MAD)."""
    scale = max(1.4826 * float(np.median(np.abs(residual))), 1e-4)
    return np.minimum(1.0, 1.5 * scale / np.maximum(np.abs(residual), 1e-12)), scale**2


def _elasticity(logs: Floats, effect: Floats, weight: Floats, place: Integers, bins: int, noise: float) -> Floats:
    prior = noise / PRIOR_SD**2
    over = np.bincount(place, weight * effect * logs, bins) + prior
    return np.clip(over / (np.bincount(place, weight * effect**2, bins) + prior), -0.5, 2.5)


def _shrunk(level: Floats, residual: Floats, place: Integers, bins: int) -> Floats:
    """Return the levels ``level`` [I] of I bins, shrunk towards their median by sampling noise (James and Stein 1961).

    ``residual`` [n] are the rows' residuals, ``place`` [n] their bins."""
    counts = np.maximum(np.bincount(place, minlength=bins), 1)
    _, noise = _weights(residual)
    sampling = np.pi / 2 * noise / counts
    between = max(float(np.nanvar(level)) - float(sampling.mean()), 0.0)
    centre = float(np.nanmedian(level))
    return centre + (level - centre) * between / np.maximum(between + sampling, 1e-12)


def _interpolate_gaps(values: Floats) -> Floats:
    """Return ``values`` [I] with NaN entries (bins without rows) interpolated linearly from the nearest others."""
    indices = np.flatnonzero(~np.isnan(values))
    return np.interp(np.arange(len(values)), indices, values[indices])
