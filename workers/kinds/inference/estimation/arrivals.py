"""How requests of a user arrive: the rate by time of day, how it varies, and what the last minutes say of the next.

What a log says of a part of the day is drawn towards the day's mean by as much as days differ (empirical Bayes). A
forecast keeps a part of the recent difference from the profile; that part, and the window over which rates are
smoothed, are those of the least absolute error, one control interval and an hour ahead: bursts make squares misleading.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from app.kinds.inference.forecast import (
    HOUR,
    LEAST_RATE,
    TYPICAL,
    UNKNOWN,
    WEIGHT,
    WINDOW,
    Forecast,
    bounds,
    corrected,
    usual_rate,
)
from app.kinds.inference.model import DAY_SECONDS
from workers.estimators.base import LEVEL, Floats
from workers.kinds.inference.estimation.counts import Counts

PARTS = 48
WINDOWS = (0.0, 10.0, 30.0, 120.0, 300.0, 900.0, 3600.0)
WEIGHTS = np.linspace(0.0, 1.0, 21)
HELD_OUT = 0.25
EARLIER = 0.6  # of a log is what forecasts of the rest go by while their numbers are fitted
ORIGINS = 4
FEWEST = 20  # intervals from which on something can be said of what comes next


class Arrivals(NamedTuple):
    """Of one user.

    Attributes:
        rate: requests per second by part of the day, [P].
        variation: squared coefficient of variation of the rate from one control interval to the next.
        numbers: of forecasts one control interval and an hour ahead: see ``app.kinds.inference.forecast``, [2, 6].
    """

    rate: Floats
    variation: float
    numbers: Floats


class Series(NamedTuple):
    """One user's requests per second in intervals of a log, [n], that begin at ``times``, [n]."""

    rate: Floats
    times: Floats
    seconds: float
    daily: bool

    def until(self, last: int) -> Series:
        """The first intervals."""
        return self._replace(rate=self.rate[:last], times=self.times[:last])

    def since(self, first: int) -> Series:
        """The last intervals."""
        return self._replace(rate=self.rate[first:], times=self.times[first:])


def series(counts: Sequence[Counts], user: int) -> list[Series]:
    """A user's rates in the logs that tell of times of day, where these cover half a day together; else in all.

    What runs leave begins at 0 whenever they were: beside a profile of the day it would count as of midnight.
    """
    every = [Series(one.counts[user] / one.seconds, one.times, one.seconds, one.daily) for one in counts]
    daily = [one for one in every if one.daily]
    return daily if sum(len(one.rate) * one.seconds for one in daily) >= DAY_SECONDS / 2 else every


def fit_arrivals(logs: Sequence[Series]) -> Arrivals:
    """What logs of one user say; at least one interval."""
    rate, seconds = profile(logs), logs[0].seconds
    cuts = [int(len(one.rate) * EARLIER) for one in logs]
    earlier = [one.until(cut) for one, cut in zip(logs, cuts, strict=True) if cut]
    later = [one.since(cut) for one, cut in zip(logs, cuts, strict=True)]
    numbers = [_horizon(later, profile(earlier or logs), steps) for steps in (1, hour_steps(seconds))]
    return Arrivals(rate, variation(logs, rate), np.stack(numbers))


def hour_steps(seconds: float) -> int:
    """An hour in control intervals, at least one."""
    return max(round(HOUR / seconds), 1)


def profile(logs: Sequence[Series]) -> Floats:
    """Requests per second by part of the day, [P]; one part where logs do not tell of times of day, or of few."""
    if not all(one.daily for one in logs) or sum(len(one.rate) * one.seconds for one in logs) < DAY_SECONDS / 4:
        return np.array([np.concatenate([one.rate for one in logs]).mean()])
    sums, counts = _by_day(logs)
    days = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)  # [days, P]
    seen = counts.sum(axis=0) > 0
    mean = sums.sum() / counts.sum()
    part = np.where(seen, sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1), mean)
    within = _within(days, part)
    between = max(float(part[seen].var()) - within / max((counts > 0).sum(axis=0).mean(), 1.0), 0.0)
    kept = between / (between + within / np.maximum((counts > 0).sum(axis=0), 0.5)) if between else np.zeros(PARTS)
    return np.asarray(mean + np.where(seen, kept, 0.0) * (part - mean), np.float64)


def _by_day(logs: Sequence[Series]) -> tuple[Floats, Floats]:
    """Sums of rates and numbers of intervals by day and part of it, [days, P] each."""
    day = np.concatenate([np.floor(one.times / DAY_SECONDS) for one in logs])
    _, place = np.unique(day, return_inverse=True)
    part = np.concatenate([np.floor(one.times % DAY_SECONDS / (DAY_SECONDS / PARTS)) for one in logs]).astype(np.int64)
    at, size = place * PARTS + part, (int(place.max()) + 1) * PARTS
    rates = np.concatenate([one.rate for one in logs])
    sums, number = (np.bincount(at, weights, size).reshape(-1, PARTS) for weights in (rates, np.ones(len(at))))
    return np.asarray(sums, np.float64), np.asarray(number, np.float64)


def _within(days: Floats, part: Floats) -> float:
    """Variance of one day's mean rate in a part of the day; with a single day by how neighbours differ."""
    repeated = (~np.isnan(days)).sum(axis=0) > 1
    if repeated.any():
        freedom = (~np.isnan(days[:, repeated])).sum() - repeated.sum()
        return float(np.nansum((days[:, repeated] - np.nanmean(days[:, repeated], axis=0)) ** 2) / freedom)
    return float((np.diff(part) ** 2).mean() / 2)


def variation(logs: Sequence[Series], rate: Floats) -> float:
    """Squared coefficient of variation of the rate about its profile: what the index of dispersion has above 1."""
    expected = np.concatenate([usual_rate(rate, one.times) * one.seconds for one in logs])
    count = np.concatenate([one.rate * one.seconds for one in logs])
    squares = float((expected**2).sum())
    return max(float(((count - expected) ** 2 - expected).sum()) / squares, 0.0) if squares > 0 else 0.0


def dispersion(logs: Sequence[Series], rate: Floats) -> float:
    """Index of dispersion of counts about the profile: 1 for a Poisson process."""
    expected = np.concatenate([usual_rate(rate, one.times) * one.seconds for one in logs])
    count = np.concatenate([one.rate * one.seconds for one in logs])
    return float(((count - expected) ** 2).sum() / max(expected.sum(), LEAST_RATE))


def smoothed(values: Floats, seconds: float, window: float) -> Floats:
    """Exponentially weighted means up to and with each interval, [n]; the first counts as what was before it."""
    kept = float(np.exp(-seconds / window)) if window else 0.0
    start = np.array([kept * values[0]])
    return np.asarray(lfilter([1 - kept], [1, -kept], values, zi=start)[0], np.float64)


def _pairs(log: Series, usual: Floats, steps: int, window: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Usual rates [n], usual and recent ones at the origins, and what came: each [n − steps]."""
    recent = smoothed(log.rate, log.seconds, window)[:-steps]
    # of the same window: during a steep part of the day the recent rate lags, and so must what it is compared with
    then = smoothed(usual, log.seconds, window)[:-steps]
    return usual[steps:], then, recent, log.rate[steps:]


def _horizon(logs: Sequence[Series], rate: Floats, steps: int) -> Floats:
    """Numbers of one horizon, [6], for rates that ``rate`` was not fitted to."""
    long = [one for one in logs if len(one.rate) > steps + FEWEST]
    if not long:
        return UNKNOWN
    seconds, tried = long[0].seconds, []
    usually = [usual_rate(rate, one.times) for one in long]
    came = np.concatenate([one.rate for one in long])
    typical = float(np.median(came / np.maximum(np.concatenate(usually), LEAST_RATE)))
    for window in WINDOWS:
        pairs = [_pairs(one, typical * usual, steps, window) for one, usual in zip(long, usually, strict=True)]
        usual, then, recent, came = (np.concatenate(column) for column in zip(*pairs, strict=True))
        errors = [np.abs(came - corrected(usual, then, recent, weight)).mean() for weight in WEIGHTS]
        weight = float(WEIGHTS[int(np.argmin(errors))])
        tried.append((min(errors), window, weight, corrected(usual, then, recent, weight), came))
    _, window, weight, mean, came = min(tried, key=lambda one: one[0])
    excess = float(((came - mean) ** 2 - mean / seconds).sum()) / max(float((mean**2).sum()), LEAST_RATE)
    spread = max(excess, 0.0)
    score = (came - mean) / np.sqrt(np.maximum(mean / seconds + spread * mean**2, LEAST_RATE))
    low, high = np.quantile(score, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return np.array([weight, window, spread, low, high, typical])


def predicted(log: Series, fitted: Arrivals, horizon: int, first: int) -> tuple[Forecast, Floats]:
    """Forecasts of a log's intervals from ``first`` on, from the interval before (``horizon`` 0) or an hour before (1).

    Returns:
        The forecasts and what came, [n − first] each.
    """
    steps = (1, hour_steps(log.seconds))[horizon]
    numbers = fitted.numbers[horizon]
    usual, then, recent, came = _pairs(
        log, numbers[TYPICAL] * usual_rate(fitted.rate, log.times), steps, numbers[WINDOW]
    )
    at = slice(max(first - steps, 0), None)
    mean = corrected(usual[at], then[at], recent[at], numbers[WEIGHT])
    return bounds(mean, log.seconds, numbers), came[at]


def back_test(log: Series) -> list[dict[str, Any]]:
    """Errors of forecasts on the last quarter of a log, from origins that move on; beside what is simpler.

    Each origin's model is fitted to all that was before it. MAE in requests per second: of the forecast, of the last
    value, of the value a day before; and the share of what came that was within the interval.
    """
    count = len(log.rate)
    cuts = np.linspace(count * (1 - HELD_OUT), count, ORIGINS + 1).astype(np.int64)
    found = []
    for horizon, ahead in enumerate((log.seconds, HOUR)):
        steps = (1, hour_steps(log.seconds))[horizon]
        if cuts[0] <= steps + FEWEST:
            continue
        parts = []
        for first, last in pairwise(cuts.tolist()):
            fitted = fit_arrivals([log.until(first)])
            parts.append(predicted(log.until(last), fitted, horizon, first))
        told = Forecast(*(np.concatenate(column) for column in zip(*(part[0] for part in parts), strict=True)))
        came = np.concatenate([part[1] for part in parts])
        found.append({"ahead_seconds": ahead, **_errors(log, told, came, int(cuts[0]), steps)})
    return found


def _errors(log: Series, told: Forecast, came: Floats, first: int, steps: int) -> dict[str, Any]:
    last = log.rate[first - steps : len(log.rate) - steps]
    day = round(DAY_SECONDS / log.seconds)
    seasonal = log.rate[first - day : len(log.rate) - day] if first >= max(day, steps) else None
    return {
        "mae": float(np.abs(told.mean - came).mean()),
        "last_value_mae": float(np.abs(last - came).mean()),
        "seasonal_naive_mae": None if seasonal is None else float(np.abs(seasonal - came).mean()),
        "coverage": float(((told.low <= came) & (came <= told.high)).mean()),
        "held_out": len(came),
    }
