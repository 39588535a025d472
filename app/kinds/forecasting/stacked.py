"""Several families together: their counts, weighed (Wolpert, “Stacked generalization”, 1992)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.arima import Arima
from app.kinds.forecasting.boosting import Boosting
from app.kinds.forecasting.gru import Gru
from app.kinds.forecasting.naive import Last, Seasonal
from app.kinds.forecasting.series import Floats, Integers, Series, unscaled

Family = Last | Seasonal | Arima | Gru | Boosting


class Stacked(Struct, frozen=True, eq=False, tag=True):
    """F fitted families, H horizons.

    Attributes:
        horizons: in intervals.
        families: that are weighed.
        weights: of each at each horizon, at least 0, 1 together where the stack answers, [H, F].
    """

    horizons: tuple[int, ...]
    families: tuple[Family, ...]
    weights: Floats

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        told = np.stack([unscaled(family.medians(series, origins), series.unit) for family in self.families])
        return np.asarray(np.log1p(np.einsum("hf,fmh->mh", self.weights, told) / series.unit), np.float64)
