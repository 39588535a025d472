"""What a family told in a back-test, and how far it erred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.forecasting.forecaster import LEVEL
from app.kinds.forecasting.series import Floats, unscaled


class Told(NamedTuple):
    """One family's medians and what came, in scaled terms, at one horizon: each fold's [m]."""

    medians: list[Floats]
    came: list[Floats]
    unit: float

    def error(self) -> float:
        """Mean absolute error in counts."""
        medians, came = (unscaled(np.concatenate(part), self.unit) for part in (self.medians, self.came))
        return float(np.abs(medians - came).mean())

    def errors(self, folds: Sequence[int]) -> Floats:
        """See ``Forecaster.errors``: of some folds, [3]."""
        medians, came = (np.concatenate([part[fold] for fold in folds]) for part in (self.medians, self.came))
        return errors(medians, came, self.unit)


def errors(medians: Floats, came: Floats, unit: float) -> Floats:
    """What is added to medians to reach the bounds, and what came over what was told: see ``Forecaster.errors``."""
    apart, count = np.sort(came - medians), len(came)
    outside = (1 - LEVEL) / 2 * (count + 1)
    low, high = apart[max(int(np.floor(outside)) - 1, 0)], apart[min(int(np.ceil(count + 1 - outside)) - 1, count - 1)]
    return np.array([low, high, unscaled(came, unit).mean() / max(unscaled(medians, unit).mean(), 1e-9)])
