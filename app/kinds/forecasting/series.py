"""Series of counts, and features of a time: calendar, and seasonal lags.

Forecasts are made on a log scale, which stabilises the variance; medians and quantiles carry over between scales, means
don't."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
DAY, WEEK = 86_400.0, 604_800.0
DAILY, WEEKLY = 4, 3  # most harmonics of day and week in the calendar
DAYS = 7  # days over which a seasonal feature averages
MEDIAN = 20.0  # median count in units of a series with large counts


class Series(NamedTuple):
    """Counts in consecutive intervals of equal length.

    Attributes:
        counts: count in each of n intervals, [n].
        start: start of the first interval, seconds since 0:00 UTC on a Thursday, such as 1970.
        seconds: length of an interval in seconds.
        unit: small count that sets the log scale; at least 1.
    """

    counts: Floats
    start: float
    seconds: float
    unit: float = 1.0

    @property
    def scaled(self) -> Floats:
        """Counts of the n intervals on the log scale, ln(1 + count / unit), [n]."""
        return np.log1p(self.counts / self.unit)

    @property
    def times(self) -> Floats:
        """Start of each of n intervals, seconds since the origin of ``start`` (0:00 UTC on a Thursday), [n]."""
        return np.asarray(self.start + self.seconds * np.arange(len(self.counts)), np.float64)

    @property
    def end(self) -> float:
        """End of the last interval, seconds since the origin of ``start`` (0:00 UTC on a Thursday)."""
        return self.start + self.seconds * len(self.counts)

    def sized(self) -> Series:
        """Return the series with ``unit`` set by its median count, so that small counts don't dominate the scale."""
        return self._replace(unit=max(float(np.median(self.counts)) / MEDIAN, 1.0))

    def until(self, last: int) -> Series:
        """Return the series up to position ``last``, exclusive."""
        return self._replace(counts=self.counts[:last])

    def since(self, first: int) -> Series:
        """Return the series from position ``first`` on."""
        return self._replace(counts=self.counts[first:], start=self.start + self.seconds * first)

    def then(self, counts: ArrayLike) -> Series:
        """Return the series with ``counts``, one per interval, appended."""
        return self._replace(counts=np.append(self.counts, np.asarray(counts, np.float64)))


def unscale(values: ArrayLike, unit: float) -> Floats:
    """Return counts, at least 0, from log-scale values, of the same shape; the inverse of ``Series.scaled``."""
    return np.maximum(unit * np.expm1(np.asarray(values, np.float64)), 0.0)


def seasons(count: int, seconds: float) -> tuple[int, ...]:
    """Return the lengths of a day and a week in intervals of ``seconds``, without those that have under two intervals
    or of which ``count`` intervals cover under three."""
    return tuple(round(span / seconds) for span in (DAY, WEEK) if 2 * seconds <= span <= count * seconds / 3)


def calendar(times: ArrayLike, known: Sequence[int]) -> Floats:
    """Return a constant and harmonics of day and week at n ``times`` (seconds since 1970), as K columns, [n, K].

    ``known`` has the result of ``seasons``: without a week, or without both, the columns of the missing season are left
    out."""
    at = np.asarray(times, np.float64)
    columns = [np.ones_like(at)]
    for span, most in zip((DAY, WEEK)[: len(known)], (DAILY, WEEKLY), strict=False):
        for harmonic in range(1, min(most, known[0] // 2) + 1):
            angle = 2 * np.pi * harmonic * (at % span) / span
            columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=-1)


def seasonal(values: Floats, origins: Integers, horizon: int, season: int, back: int = 1) -> Floats:
    """Return an earlier one of ``values`` [n] at the same time of the season, for the interval ``horizon`` after each
    of m ``origins`` (indices), [m].

    It is the latest one known at the origin (``back`` 1), or ``back`` − 1 seasons before that; horizon and season are
    in intervals. Values before the series are replaced by the mean of its first season."""
    away = season * (-(-horizon // season) + back - 1)
    at = origins + horizon - away
    return np.where(at >= 0, values[np.maximum(at, 0)], values[:season].mean())


def seasonal_features(values: Floats, origins: Integers, horizon: int, known: Sequence[int]) -> Floats:
    """Return K seasonal features of ``values`` [n] for the interval ``horizon`` after each of m ``origins`` (indices),
    [m, K]: the value one season before, for each season ``known`` (in intervals), and the mean over ``DAYS`` days at
    that time; K is 0 without a season."""
    columns = [seasonal(values, origins, horizon, season) for season in known]
    if known:
        days = [seasonal(values, origins, horizon, known[0], back) for back in range(1, DAYS + 1)]
        columns.append(np.mean(days, axis=0))
    return np.stack(columns, axis=-1) if columns else np.zeros((len(origins), 0))


def recent_features(values: Floats, origins: Integers, lags: int, spans: Sequence[int]) -> Floats:
    """Return recent features at m origins, [m, lags + spans]: the last ``lags`` values, newest first, and the means
    over the last ``spans`` intervals."""
    at = np.maximum(origins[:, None] - np.arange(lags), 0)
    total = np.append(0.0, np.cumsum(values))
    means = [
        (total[origins + 1] - total[np.maximum(origins + 1 - span, 0)]) / np.minimum(origins + 1, span)
        for span in spans
    ]
    return np.concatenate([values[at], np.stack(means, axis=-1)], axis=-1)
