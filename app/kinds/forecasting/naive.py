"""What needs no fit: the last value, and the value at the same time a day or a week before."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.series import Floats, Integers, Series, scaled, seasonal


class Last(Struct, frozen=True, eq=False, tag=True):
    """What came last goes on."""

    horizons: tuple[int, ...]

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        return np.repeat(scaled(series.counts)[origins, None], len(self.horizons), axis=1)


class Seasonal(Struct, frozen=True, eq=False, tag=True):
    """What came a season before comes again; ``season`` in intervals."""

    horizons: tuple[int, ...]
    season: int

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        values = scaled(series.counts)
        return np.stack([seasonal(values, origins, ahead, self.season) for ahead in self.horizons], axis=1)
