"""The medians of a family in a back-test, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.forecasting.forecaster import LEVEL
from app.kinds.forecasting.series import Floats, unscaled

FEW = 5.0
"""Counts an interval below which medians are mostly 0, or nearly."""


class Told(NamedTuple):
    """One family's medians and what came, in scaled terms, at one horizon: each fold's [m]."""

    medians: list[Floats]
    came: list[Floats]
    unit: float

    def add(self, medians: Floats, came: Floats) -> None:
        """Another fold."""
        self.medians.append(medians)
        self.came.append(came)

    def copy(self) -> Told:
        """Another one, to which folds may be added."""
        return Told([*self.medians], [*self.came], self.unit)

    @property
    def absolute(self) -> list[Floats]:
        """Absolute errors in counts, each fold's [m]."""
        folds = zip(self.medians, self.came, strict=True)
        return [np.abs(unscaled(medians, self.unit) - unscaled(came, self.unit)) for medians, came in folds]

    def error(self, folds: Sequence[int] | None = None) -> float:
        """Mean absolute error in counts, of all folds or of some."""
        each = self.absolute
        return float(np.concatenate(each if folds is None else [each[fold] for fold in folds]).mean())

    def errors(self, folds: Sequence[int]) -> Floats:
        """See ``Forecaster.errors``: of some folds, [4]."""
        medians, came = (np.concatenate([part[fold] for fold in folds]) for part in (self.medians, self.came))
        return errors(medians, came, self.unit)


def errors(medians: Floats, came: Floats, unit: float) -> Floats:
    """What leads from medians to the bounds and to the mean, [4]: see ``Forecaster.errors``.

    The mean is a multiple of the median, which keeps its days and weeks. Where few come, the median of most intervals
    is 0, and so would be every multiple of it: then the mean is a line through what came over the medians.
    """
    apart, count = np.sort(came - medians), len(came)
    outside = (1 - LEVEL) / 2 * (count + 1)
    low, high = apart[max(int(np.floor(outside)) - 1, 0)], apart[min(int(np.ceil(count + 1 - outside)) - 1, count - 1)]
    counted, expected = unscaled(came, unit), unscaled(medians, unit)
    ratio = counted.mean() / max(expected.mean(), 1e-9)
    if counted.mean() >= FEW:
        return np.array([low, high, ratio, 0.0])
    apart_from_mean = expected - expected.mean()
    slope = max(float((apart_from_mean * counted).sum() / max((apart_from_mean**2).sum(), 1e-9)), 0.0)
    added = counted.mean() - slope * expected.mean()
    return np.array([low, high, slope, added] if added >= 0 else [low, high, ratio, 0.0])
