"""The contract of a domain-model family, and the states in which no model can be had.

A family learns how one positive metric depends on the allocation and on the features:

``fit(X, y, groups)``
    ``X`` float [n, R + F] holds the resources' values and then the features' (the order of :class:`Inputs`), ``y``
    float [n] the metric, greater than 0, and ``groups`` int [n] the execution that each row comes from. Returns itself.
``predict(X)``
    A :class:`Prediction` for ``X`` [m, R + F]: the median, and the bounds of a 90 % interval as the family sees it
    (uncalibrated: ``intervals`` calibrates).
``median(X)``
    The first part of it, without the cost of the bounds.
``frozen()``
    An unfitted copy that keeps the hyper-parameters found by ``fit``, so that cross-validation need not search in
    every fold.

A constructor takes the :class:`Inputs` and hyper-parameters, never data; fitted names end in ``_``. Every member of
``registry.FAMILIES`` is run through ``tests/contracts/estimator.py``.

Errors: ``EstimationError`` ┬ ``TooLittleData`` (what is needed, and what is there)
                            └ ``CriterionMissed`` (a simulated iteration takes too long, with the figures)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.charts import text

Floats = NDArray[np.float64]
Integers = NDArray[np.intp]
LEVEL = 0.9
NORMAL_90 = 1.6448536269514722  # standard normal quantile at (1 + LEVEL) / 2
LARGEST_LOG = 60.0  # predictions stay within e^±60, whatever is extrapolated


class EstimationError(ValueError):
    """No domain model can be had; the message says why, ``pointer`` names the field it hangs on."""

    def __init__(self, detail: str, pointer: str = "") -> None:
        self.pointer = pointer
        super().__init__(detail)


class TooLittleData(EstimationError):
    """The samples can't carry a model: a state with its terms, not a fault.

    Attributes:
        needs, has: the terms in words, for example “3 executions at 3 allocations” and “1 at 1”.
    """

    def __init__(self, needs: str, has: str, pointer: str = "/samples") -> None:
        self.needs, self.has = needs, has
        super().__init__(f"needs {needs}; has {has}", pointer)


class CriterionMissed(EstimationError):
    """One simulated iteration takes longer than the spec's criterion allows.

    Attributes:
        seconds, allowed_seconds: as measured, and the lesser of the criterion's two limits.
    """

    def __init__(self, seconds: float, allowed_seconds: float, reason: str) -> None:
        self.seconds, self.allowed_seconds = seconds, allowed_seconds
        took, allowed = text.seconds(seconds), text.seconds(allowed_seconds)
        super().__init__(
            f"one simulated iteration takes {took}; the criterion allows {allowed} ({reason})", "/criterion"
        )


@dataclass(frozen=True)
class Inputs:
    """Names of the columns of ``X``: the resources, then the features.

    Attributes:
        most_cells: distinct inputs that a family whose work grows with their cube is conditioned on, at most.
    """

    resources: tuple[str, ...]
    features: tuple[str, ...] = ()
    most_cells: int = 1_500

    @property
    def width(self) -> int:
        """Number of columns R + F."""
        return len(self.resources) + len(self.features)

    def check(self, X: Floats) -> None:
        """Refuse an ``X`` that is not [n, R + F].

        Raises:
            ValueError: wrong rank or width.
        """
        if X.ndim != 2 or X.shape[1] != self.width:
            raise ValueError(f"X must be [n, {self.width}] for {self.resources + self.features}; got {X.shape}")


class Prediction(NamedTuple):
    """Median and bounds of the 90 % interval, each [n]."""

    mean: Floats
    low: Floats
    high: Floats


class Estimator(Protocol):
    """A family, see the module docstring."""

    name: str

    def fit(self, X: Floats, y: Floats, groups: Integers) -> Self:
        """Learn from ``X`` [n, R + F], ``y`` [n] and the execution of each row [n]."""
        ...

    def predict(self, X: Floats) -> Prediction:
        """Predict for ``X`` [m, R + F]."""
        ...

    def median(self, X: Floats) -> Floats:
        """Predict the median for ``X`` [m, R + F]."""
        ...

    def frozen(self) -> "Estimator":
        """Return an unfitted copy with the hyper-parameters found."""
        ...


class Predictor(Protocol):
    """What a family whose bounds cost nothing inherits ``median`` from."""

    def predict(self, X: Floats) -> Prediction:
        """See the module docstring."""
        ...

    def median(self, X: Floats) -> Floats:
        """See the module docstring."""
        return self.predict(X).mean


def from_logs(mean: Floats, sd: Floats | float) -> Prediction:
    """A log-normal prediction from the mean [n] and standard deviation of the logarithm."""
    centre = np.clip(mean, -LARGEST_LOG, LARGEST_LOG)
    half = NORMAL_90 * np.clip(sd, 0.0, 10.0)
    return Prediction(np.exp(centre), np.exp(centre - half), np.exp(centre + half))


def spread(residuals: Floats, parameters: int) -> float:
    """Standard deviation of log residuals [n], corrected for the number of fitted parameters."""
    return float(np.sqrt((residuals**2).sum() / max(len(residuals) - parameters, 1)))


def listed(names: Sequence[str]) -> str:
    """Names in words: “a, b and c”."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else "none"
