"""A series of counts, and what can be told from it of each moment: the calendar, and the same time on days before.

Forecasts are made in scaled terms, in which counts of any size vary alike; medians and quantiles stay what they are
under such a scale, means don't.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
DAY, WEEK = 86_400.0, 604_800.0
DAILY, WEEKLY = 4, 3  # harmonics of the calendar
DAYS = 7  # that are averaged over
MEDIAN = 20.0  # counts, in units of a series of many


class Series(NamedTuple):
    """What came in intervals that follow one another.

    Attributes:
        counts: of each, [n].
        start: seconds since some Thursday's 0:00 UTC, such as 1970, at which the first begins.
        seconds: of each.
        unit: counts that are few, to which others are scaled; at least 1.
    """

    counts: Floats
    start: float
    seconds: float
    unit: float = 1.0

    @property
    def scaled(self) -> Floats:
        """The counts in scaled terms, [n]."""
        return np.log1p(self.counts / self.unit)

    @property
    def times(self) -> Floats:
        """When each begins, [n]."""
        return np.asarray(self.start + self.seconds * np.arange(len(self.counts)), np.float64)

    @property
    def end(self) -> float:
        """When the last one ends."""
        return self.start + self.seconds * len(self.counts)

    def sized(self) -> Series:
        """With its unit: a logarithm must not make an hour without anything the greatest event of all."""
        return self._replace(unit=max(float(np.median(self.counts)) / MEDIAN, 1.0))

    def until(self, last: int) -> Series:
        """The series up to an interval, exclusively."""
        return self._replace(counts=self.counts[:last])

    def since(self, first: int) -> Series:
        """The intervals from a position on."""
        return self._replace(counts=self.counts[first:], start=self.start + self.seconds * first)

    def then(self, counts: ArrayLike) -> Series:
        """The series with these counts after its last interval."""
        return self._replace(counts=np.append(self.counts, np.asarray(counts, np.float64)))


def unscaled(values: ArrayLike, unit: float) -> Floats:
    """The counts of values in scaled terms, at least 0."""
    return np.maximum(unit * np.expm1(np.asarray(values, np.float64)), 0.0)


def seasons(count: int, seconds: float) -> tuple[int, ...]:
    """A day and a week in intervals, where so many of them tell of it: three days, three weeks at least."""
    return tuple(round(span / seconds) for span in (DAY, WEEK) if 2 * seconds <= span <= count * seconds / 3)


def calendar(times: ArrayLike, known: Sequence[int]) -> Floats:
    """Harmonics of the day and of the week, where ``seasons`` has them, after a constant: [n, K]."""
    at = np.asarray(times, np.float64)
    columns = [np.ones_like(at)]
    for span, most in zip((DAY, WEEK)[: len(known)], (DAILY, WEEKLY), strict=False):
        for harmonic in range(1, min(most, known[0] // 2) + 1):
            angle = 2 * np.pi * harmonic * (at % span) / span
            columns += [np.sin(angle), np.cos(angle)]
    return np.stack(columns, axis=-1)


def seasonal(values: Floats, origins: Integers, horizon: int, season: int, back: int = 1) -> Floats:
    """The value ``back`` seasons before the one that is ``horizon`` after each origin, of those that are known, [m].

    What is before the first value counts as the mean of the first season.
    """
    away = season * (-(-horizon // season) + back - 1)
    at = origins + horizon - away
    return np.where(at >= 0, values[np.maximum(at, 0)], values[:season].mean())


def about(values: Floats, origins: Integers, horizon: int, known: Sequence[int]) -> Floats:
    """Of a moment to be forecast: the value one season before, of each; and the mean over days, [m, 0, 2 or 3]."""
    columns = [seasonal(values, origins, horizon, season) for season in known]
    if known:
        days = [seasonal(values, origins, horizon, known[0], back) for back in range(1, DAYS + 1)]
        columns.append(np.mean(days, axis=0))
    return np.stack(columns, axis=-1) if columns else np.zeros((len(origins), 0))


def lately(values: Floats, origins: Integers, lags: int, spans: Sequence[int]) -> Floats:
    """At each origin: the last values, newest first, and means over the last spans, [m, lags + spans]."""
    at = np.maximum(origins[:, None] - np.arange(lags), 0)
    total = np.append(0.0, np.cumsum(values))
    means = [
        (total[origins + 1] - total[np.maximum(origins + 1 - span, 0)]) / np.minimum(origins + 1, span)
        for span in spans
    ]
    return np.concatenate([values[at], np.stack(means, axis=-1)], axis=-1)
