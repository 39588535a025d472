"""ARIMA about a course over day and week: the recursion of its innovations, and forecasts from every moment."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.series import Floats, Integers, Series, calendar, scaled


class Arima(Struct, frozen=True, eq=False, tag=True):
    """A fitted model of p past values and q past innovations (Box and Jenkins, 1970); differences are in ``ar``.

    Attributes:
        horizons: in intervals.
        seasons: of its calendar.
        course: coefficients of the calendar, [K].
        ar, ma: of past differences from the course and of past innovations, the newest first, [p] and [q].
    """

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    course: Floats
    ar: Floats
    ma: Floats

    def usual(self, series: Series, more: int = 0) -> Floats:
        """The course over a series and so many intervals after it, [n + more]."""
        times = series.start + series.seconds * np.arange(len(series.counts) + more)
        return np.asarray(calendar(times, self.seasons) @ self.course)

    def innovations(self, rest: Floats) -> Floats:
        """What one step ahead of each value was not foreseen, [n]; before the first all is as usual."""
        ma = self.ma.tolist()
        told = np.convolve(rest, np.append(0.0, self.ar))[: len(rest)]
        found: list[float] = [0.0] * len(ma)
        for value in (rest - told).tolist():
            found.append(value - sum(share * past for share, past in zip(ma, reversed(found), strict=False)))
        return np.array(found[len(ma) :])

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        most, values = max(self.horizons), scaled(series.counts)
        usual = self.usual(series, most)
        rest = values - usual[: len(values)]
        ahead = self._ahead(rest, self.innovations(rest), origins, most)
        at = np.array(self.horizons)
        return np.asarray(ahead[:, at - 1] + usual[origins[:, None] + at])

    def _ahead(self, rest: Floats, innovations: Floats, origins: Integers, most: int) -> Floats:
        past, shocks = _before(rest, origins, len(self.ar)), _before(innovations, origins, len(self.ma))
        told = np.zeros((len(origins), most))
        for step in range(most):
            told[:, step] = past @ self.ar + shocks[:, : max(len(self.ma) - step, 0)] @ self.ma[step:]
            past = np.concatenate([told[:, step : step + 1], past[:, :-1]], axis=1) if len(self.ar) else past
        return told


def _before(values: Floats, origins: Integers, count: int) -> Floats:
    """The last ``count`` values at each origin, the newest first, [m, count]; 0 before the first."""
    at = origins[:, None] - np.arange(count)
    return np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
