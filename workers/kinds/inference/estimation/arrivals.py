"""Estimation of arrivals: rate by part of the day, its variation, and one-step forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls
from scipy.signal import lfilter

from app.kinds.columns import MICRO
from app.kinds.inference.model import (
    CAME,
    DAY_SECONDS,
    EIGHTHS,
    HIGH,
    LAG,
    LASTING,
    LEAST_RATE,
    LOW,
    SLOW,
    TREND,
    TYPICAL,
    UNKNOWN,
    VARIATION,
    WEIGHT,
    WINDOW,
    Forecast,
    Recent,
    bounds,
    correct_rates,
    usual_rate,
)
from app.kinds.inference.samples import Requests
from workers.estimators.base import LEVEL, Floats

DATED = 1e8
"""Least seconds of a time since 1970; smaller times count from an arbitrary start."""
MOST_INTERVALS = 5_000_000
SILENCE = 7 * DAY_SECONDS
"""Seconds without any request after which a log is split: services may rest for nights, weekends and holidays."""


class Counts(NamedTuple):
    """Numbers of requests of U users in n consecutive intervals.

    Attributes:
        counts: numbers of requests, [U, n].
        start: seconds (since 1970 if the log is dated) at which the first interval begins.
        seconds: length of an interval, seconds.
    """

    counts: Floats
    start: float
    seconds: float

    @property
    def times(self) -> Floats:
        """Seconds at which each interval begins, [n]."""
        return np.asarray(self.start + self.seconds * np.arange(self.counts.shape[1]), np.float64)

    @property
    def daily(self) -> bool:
        """Whether the log shows times of day: it is dated, or covers at least a day."""
        return self.start >= DATED or self.counts.shape[1] * self.seconds >= DAY_SECONDS

    def until(self, last: int) -> Counts:
        """Return the first ``last`` intervals of all users."""
        return self._replace(counts=self.counts[:, :last])


def latest(log: Requests, seconds: float) -> Requests:
    """Return the requests of a log's last ``seconds``."""
    if not len(log.time):
        return log
    return _part(log, int(np.searchsorted(log.time, log.time[-1] - seconds * MICRO)), len(log.time))


def parts(log: Requests, seconds: float) -> list[Requests]:
    """Split a log, in order of time, at silences of more than a week; of a log longer than ``MOST_INTERVALS`` times
    ``seconds`` in all, the end is kept."""
    cuts = [0, *(np.flatnonzero(np.diff(log.time) > SILENCE * MICRO) + 1).tolist(), len(log.time)]
    requests, left = list[Requests](), MOST_INTERVALS * seconds
    for first, last in reversed([*pairwise(cuts)]):
        if left >= seconds and last > first:
            requests.append(latest(_part(log, first, last), left))
            left -= span(requests[-1]) + seconds
    return requests[::-1]


def span(log: Requests) -> float:
    """Return the seconds from a log's first request to its last; 0 without any."""
    return float(log.time[-1] - log.time[0]) / MICRO if len(log.time) else 0.0


def count_requests(logs: Sequence[Requests], users: int, seconds: float) -> list[Counts]:
    """Count the requests of ``users`` users by intervals of ``seconds`` in each part of the logs.

    A part's last interval, which is incomplete, is left out unless it is the only one. If a log has parts of at least
    one interval, shorter parts are left out as artefacts of clock jumps.
    """
    return [one for log in logs for one in _count_log(log, users, seconds)]


def _count_log(log: Requests, users: int, seconds: float) -> list[Counts]:
    result = parts(log, seconds)
    long = [one for one in result if span(one) >= seconds] or result
    return [_intervals(one, users, seconds, dated=log.time[0] >= DATED * MICRO) for one in long]


def _intervals(log: Requests, users: int, seconds: float, *, dated: bool) -> Counts:
    first = np.floor(log.time[0] / MICRO / seconds) * seconds
    interval = ((log.time / MICRO - first) / seconds).astype(np.int64)
    count = int(interval[-1]) + 1
    size = users * count
    counts = np.bincount(log.user.astype(np.int64) * count + interval, minlength=size).reshape(users, count)
    start = float(first if dated or first < DATED else first % DAY_SECONDS)  # a clock jump must not look like a date
    return Counts(counts[:, : max(count - 1, 1)].astype(np.float64), start, seconds)


def _part(log: Requests, first: int, last: int) -> Requests:
    return log._replace(time=log.time[first:last], user=log.user[first:last], size=log.size[first:last])


# Arrivals of a user's requests: rate by time of day, its variation, and forecasts from the last minutes.
#
# The rate in a part of the day is shrunk to the day's mean, according to differences between days (empirical Bayes). A
# forecast adds shares of the recent deviation from the profile, of the profile's change and of the recent trend (a
# damped trend, Gardner and McKenzie, 1985). The shares and smoothing windows have the least absolute error one control
# interval ahead, since bursts distort squared errors. Longer horizons are forecast by
# ``workers.estimators.forecasting``.


PARTS = 48
WINDOWS = (0.0, 10.0, 30.0, 120.0, 300.0, 900.0, 3600.0)
SLOWER = (1.0, 3.0)  # windows of the recent trend, relative to the longer of window and interval
LEAST, MOST = np.array([0.0, -1.0, -1.0]), np.ones(3)  # bounds of the shares
ROUNDS, TAKEN = 20, 5_000
HELD_OUT = 0.25
EARLIER = 0.6  # share of a log for the profile, while the forecast's parameters are fitted to the rest
ORIGINS = 4
FEWEST = 20  # intervals required for a forecast


class Arrivals(NamedTuple):
    """Fitted arrivals of one user.

    Attributes:
        rate: requests per second by P equal parts of the day, [P]; [1]: the same all day.
        variation: squared coefficient of variation of the rate between control intervals.
        numbers: coefficients of forecasts one control interval ahead, with and without recent data
            (``app.kinds.inference.model``), [2, 17].
        parts: squared coefficients of variation of factors that hold for 0.1, 1, 6 and 60 control intervals, [4].
    """

    rate: Floats
    variation: float
    numbers: Floats
    parts: Floats


class Series(NamedTuple):
    """One user's requests per second in n intervals of ``seconds``, [n]; ``times``: seconds at which the intervals
    begin, [n]; ``daily``: whether ``times`` show times of day."""

    rate: Floats
    times: Floats
    seconds: float
    daily: bool

    def until(self, last: int) -> Series:
        """Return the first ``last`` intervals."""
        return self._replace(rate=self.rate[:last], times=self.times[:last])

    def since(self, first: int) -> Series:
        """Return the intervals from index ``first`` on."""
        return self._replace(rate=self.rate[first:], times=self.times[first:])


def series(counts: Sequence[Counts], user: int) -> list[Series]:
    """Return a user's rates in each log with times of day, if these cover half a day together; else in all logs.

    Runs' logs begin at 0 at any time of day; beside a daily profile they would count as midnight.
    """
    every = [Series(one.counts[user] / one.seconds, one.times, one.seconds, one.daily) for one in counts]
    daily = [one for one in every if one.daily]
    return daily if sum(len(one.rate) * one.seconds for one in daily) >= DAY_SECONDS / 2 else every


def fit_arrivals(logs: Sequence[Series], fine: Sequence[Series] = ()) -> Arrivals:
    """Fit one user's arrivals to logs with at least one interval.

    Args:
        logs: rates by control interval.
        fine: rates by tenths of a control interval; if empty, all variation is taken to hold for a control interval.
    """
    rate = profile(logs)
    cuts = [int(len(one.rate) * EARLIER) for one in logs]
    earlier = [one.until(cut) for one, cut in zip(logs, cuts, strict=True) if cut]
    later = [one.since(cut) for one, cut in zip(logs, cuts, strict=True)]
    numbers = [_numbers(later, profile(earlier or logs), late=late) for late in (True, False)]
    varies = variation(logs, rate)
    parts = parts_of_variation(fine, rate) if fine else varies * (LASTING == 1.0)
    return Arrivals(rate, varies, np.stack(numbers), parts)


def profile(logs: Sequence[Series]) -> Floats:
    """Estimate requests per second by part of the day, shrunk to the mean, [48]; [1] if the logs cover less than a
    quarter of a day, or one of them shows no times of day."""
    if not all(one.daily for one in logs) or sum(len(one.rate) * one.seconds for one in logs) < DAY_SECONDS / 4:
        return np.array([np.concatenate([one.rate for one in logs]).mean()])
    sums, counts = _by_day(logs)
    days = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)  # [days, P]
    observed = counts.sum(axis=0) > 0
    mean = sums.sum() / counts.sum()
    part = np.where(observed, sums.sum(axis=0) / np.maximum(counts.sum(axis=0), 1), mean)
    within = _within(days, part)
    between = max(float(part[observed].var()) - within / max((counts > 0).sum(axis=0).mean(), 1.0), 0.0)
    share = between / (between + within / np.maximum((counts > 0).sum(axis=0), 0.5)) if between else np.zeros(PARTS)
    return np.asarray(mean + np.where(observed, share, 0.0) * (part - mean), np.float64)


def _by_day(logs: Sequence[Series]) -> tuple[Floats, Floats]:
    """Return sums of rates and numbers of intervals by day and part of the day, [days, P] each."""
    day = np.concatenate([np.floor(one.times / DAY_SECONDS) for one in logs])
    _, place = np.unique(day, return_inverse=True)
    part = np.concatenate([np.floor(one.times % DAY_SECONDS / (DAY_SECONDS / PARTS)) for one in logs]).astype(np.int64)
    at, size = place * PARTS + part, (int(place.max()) + 1) * PARTS
    rates = np.concatenate([one.rate for one in logs])
    sums, number = (np.bincount(at, weights, size).reshape(-1, PARTS) for weights in (rates, np.ones(len(at))))
    return np.asarray(sums, np.float64), np.asarray(number, np.float64)


def _within(days: Floats, part: Floats) -> float:
    """Return the variance of one day's mean rate in a part of the day, from ``days`` [days, P] (NaN: no data).

    With a single day it comes from differences between adjacent parts of the mean day ``part`` [P].
    """
    repeated = (~np.isnan(days)).sum(axis=0) > 1
    if repeated.any():
        freedom = (~np.isnan(days[:, repeated])).sum() - repeated.sum()
        return float(np.nansum((days[:, repeated] - np.nanmean(days[:, repeated], axis=0)) ** 2) / freedom)
    return float((np.diff(part) ** 2).mean() / 2)


def variation(logs: Sequence[Series], rate: Floats) -> float:
    """Estimate the squared coefficient of variation of rates about the daily profile ``rate`` [P] (requests per second)
    beyond Poisson noise; at least 0."""
    count, expected = _counts(logs, rate, 1)
    squares = float((expected**2).sum())
    return max(float(((count - expected) ** 2 - expected).sum()) / squares, 0.0) if squares > 0 else 0.0


def parts_of_variation(logs: Sequence[Series], rate: Floats) -> Floats:
    """Fit squared coefficients of variation of independent factors that hold for 0.1, 1, 6 and 60 control intervals,
    [4].

    The excess variance of counts over a stretch is Σ part · min(1, lasting/stretch), where parts are differences of the
    products of 1 + variation of the longer factors. The parts are fitted to the excess over stretches of these lengths,
    by non-negative least squares of relative errors.

    Args:
        logs: rates by tenths of a control interval.
        rate: the daily profile, requests per second, [P].
    """
    stretches = (LASTING / LASTING[0]).round().astype(np.int64)
    rows, wanted, known = [], [], []
    for stretch in stretches:
        count, expected = _counts(logs, rate, int(stretch))
        if len(count) < FEWEST or not expected.any():
            continue
        squares = float((expected**2).sum())
        excess = float(((count - expected) ** 2 - expected).sum()) / squares
        weight = 1 / max(excess + float(expected.sum()) / squares, LEAST_RATE)
        rows.append(weight * np.minimum(1.0, stretches / stretch))
        wanted.append(weight * excess)
        known.append(stretch)
    result = np.zeros(len(stretches))
    if known:
        covered = stretches <= known[-1]
        result[covered] = nnls(np.array(rows)[:, covered], np.array(wanted))[0]
    together = 1 + np.cumsum(result[::-1])[::-1]  # product over the factors that hold at least as long
    return np.asarray(together / np.append(together[1:], 1.0) - 1)


def _counts(logs: Sequence[Series], rate: Floats, intervals: int) -> tuple[Floats, Floats]:
    """Count requests in k stretches of ``intervals`` intervals; return counts and those expected by ``rate``, [k]."""
    count, expected = [np.zeros(0)], [np.zeros(0)]
    for one in logs:
        whole = len(one.rate) // intervals * intervals
        for counts, values in ((count, one.rate), (expected, usual_rate(rate, one.times))):
            counts.append(values[:whole].reshape(-1, intervals).sum(axis=1) * one.seconds)
    return np.concatenate(count), np.concatenate(expected)


def dispersion(logs: Sequence[Series], rate: Floats, intervals: int = 1) -> float:
    """Compute the index of dispersion (variance over mean) of counts in ``intervals`` intervals about ``rate`` [P]."""
    count, expected = _counts(logs, rate, intervals)
    return float(((count - expected) ** 2).sum() / max(expected.sum(), LEAST_RATE))


def smooth_exponentially(values: Floats, seconds: float, window: float) -> Floats:
    """Average ``values`` [n] of intervals of ``seconds`` exponentially, with time constant ``window`` seconds (0: no
    smoothing); return the mean up to and including each interval, [n]."""
    weight = float(np.exp(-seconds / window)) if window else 0.0
    start = np.array([weight * values[0]])
    return np.asarray(lfilter([1 - weight], [1, -weight], values, zi=start)[0], np.float64)


class Pairs(NamedTuple):
    """Inputs and outcomes of n one-step forecasts, in requests per second.

    Attributes:
        usual: usual rate of the next interval, [n].
        recent: smoothed rates at the origin of the forecast, [n] each.
        came: measured rate of the next interval, [n].
    """

    usual: Floats
    recent: Recent
    came: Floats


def _pairs(log: Series, usual: Floats, windows: tuple[float, float]) -> Pairs:
    rate, slow = (smooth_exponentially(log.rate, log.seconds, window)[:-1] for window in windows)
    # the same window for both: in a steep part of the day the smoothed rate lags, and so must its reference
    then = smooth_exponentially(usual, log.seconds, windows[0])[:-1]
    return Pairs(usual[1:], Recent(rate, then, slow), log.rate[1:])


def _join_pairs(pairs: Sequence[Pairs]) -> Pairs:
    recent = Recent(*(np.concatenate(column) for column in zip(*(one.recent for one in pairs), strict=True)))
    return Pairs(np.concatenate([one.usual for one in pairs]), recent, np.concatenate([one.came for one in pairs]))


def _fit_forecast_weights(pairs: Pairs) -> Floats:
    """Fit coefficients of the recent deviation, of the profile's change and of the recent trend in forecasts, [3], by
    least absolute deviations (reweighted least squares) with a ridge towards 0."""
    every = slice(None, None, 1 + len(pairs.came) // TAKEN)
    usual, recent = pairs.usual, pairs.recent
    parts = np.stack([recent.rate - usual, usual - recent.usual, recent.rate - recent.slow], axis=1)[every]
    wanted = (pairs.came - usual)[every]
    scale = float(np.abs(wanted).mean()) + LEAST_RATE
    prior = FEWEST * scale**2 * np.eye(3)
    coefficients: Floats = np.zeros(3)
    weight: Floats = np.ones(len(wanted))
    for _ in range(ROUNDS):
        weighed = parts * weight[:, None]
        coefficients = np.asarray(np.linalg.solve(weighed.T @ parts + prior, weighed.T @ wanted), np.float64)
        weight = np.asarray(scale / np.maximum(np.abs(wanted - parts @ coefficients), 0.01 * scale), np.float64)
    return np.clip(coefficients, LEAST, MOST)


def _numbers(logs: Sequence[Series], rate: Floats, *, late: bool) -> Floats:
    """Fit the forecast's coefficients [17] to ``logs``, given the profile ``rate`` [P] of other logs; ``late``: whether
    recent rates are inputs. Logs that are all shorter than 22 intervals give the default coefficients."""
    long = [one for one in logs if len(one.rate) > 1 + FEWEST]
    if not long:
        return UNKNOWN
    seconds = long[0].seconds
    usually = [usual_rate(rate, one.times) for one in long]
    every = np.concatenate([one.rate for one in long])
    typical = float(np.median(every / np.maximum(np.concatenate(usually), LEAST_RATE)))
    usual = [typical * one for one in usually]
    numbers = UNKNOWN.copy()
    numbers[TYPICAL] = typical
    if not late:
        return _spread(numbers, np.concatenate(usual), every, seconds)
    tried = []
    for windows in _windows(seconds):
        pairs = _join_pairs([_pairs(one, own, windows) for one, own in zip(long, usual, strict=True)])
        numbers[[WEIGHT, LAG, TREND]], numbers[[WINDOW, SLOW]] = _fit_forecast_weights(pairs), windows
        mean = correct_rates(pairs.usual, pairs.recent, numbers)
        tried.append((float(np.abs(pairs.came - mean).mean()), numbers.copy(), mean, pairs.came))
    _, numbers, mean, came = min(tried, key=lambda one: one[0])
    return _spread(numbers, mean, came, seconds)


def _spread(numbers: Floats, mean: Floats, came: Floats, seconds: float) -> Floats:
    """Estimate how measured rates scatter about forecasts, and set it in the forecast's coefficients ``numbers`` [17],
    in place: squared coefficient of variation beyond Poisson noise, 5 % and 95 % quantiles of the standardised error,
    and means of the eighths of measured over forecast. Returns ``numbers``.

    Args:
        mean, came: forecast and measured requests per second, [n].
        seconds: length of an interval.
    """
    excess = float(((came - mean) ** 2 - mean / seconds).sum()) / max(float((mean**2).sum()), LEAST_RATE)
    numbers[VARIATION] = max(excess, 0.0)
    score = (came - mean) / np.sqrt(np.maximum(mean / seconds + numbers[VARIATION] * mean**2, LEAST_RATE))
    numbers[[LOW, HIGH]] = np.quantile(score, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    over = came / np.maximum(mean, 1 / seconds)  # a single request where less than one is expected is no burst
    numbers[CAME] = [part.mean() for part in np.array_split(np.sort(over), len(EIGHTHS))]
    return numbers


def _windows(seconds: float) -> list[tuple[float, float]]:
    """List pairs of smoothing windows in seconds: one for the recent rate, and a longer one for its trend."""
    pairs = [(window, longer * max(window, seconds)) for window in WINDOWS for longer in SLOWER]
    return [(window, slow) for window, slow in pairs if slow > window]


def forecast_intervals(log: Series, fitted: Arrivals, first: int) -> tuple[Forecast, Floats]:
    """Forecast each interval of ``log`` from index ``first`` on by the intervals before it; return the forecasts and
    the measured requests per second, [n − first] each."""
    numbers = fitted.numbers[0]
    usual = numbers[TYPICAL] * usual_rate(fitted.rate, log.times)
    pairs = _pairs(log, usual, (numbers[WINDOW], numbers[SLOW]))
    at = slice(max(first - 1, 0), None)
    mean = correct_rates(pairs.usual[at], Recent(*(part[at] for part in pairs.recent)), numbers)
    return bounds(mean, log.seconds, numbers), pairs.came[at]


def back_test(log: Series) -> dict[str, Any] | None:
    """Measure errors of one-step forecasts on the last quarter of a log; None if it is too short.

    The model is refitted at four origins to all data before. Mean absolute errors are in requests per second: of the
    forecast (``mae``), the last value (``last_value_mae``), the value one day before (``seasonal_naive_mae``; None if
    shorter). ``coverage`` is the share, 0…1, within the 90 % interval."""
    count = len(log.rate)
    cuts = np.linspace(count * (1 - HELD_OUT), count, ORIGINS + 1).astype(np.int64)
    if cuts[0] <= 1 + FEWEST:
        return None
    parts = [
        forecast_intervals(log.until(last), fit_arrivals([log.until(first)]), first)
        for first, last in pairwise(cuts.tolist())
    ]
    forecast = Forecast(*(np.concatenate(column) for column in zip(*(part[0] for part in parts), strict=True)))
    return _errors(log, forecast, np.concatenate([part[1] for part in parts]), int(cuts[0]))


def _errors(log: Series, forecast: Forecast, came: Floats, first: int) -> dict[str, Any]:
    last = log.rate[first - 1 : len(log.rate) - 1]
    day = round(DAY_SECONDS / log.seconds)
    seasonal = log.rate[first - day : len(log.rate) - day] if first >= day else None
    return {
        "ahead_seconds": log.seconds,
        "mae": float(np.abs(forecast.mean - came).mean()),
        "last_value_mae": float(np.abs(last - came).mean()),
        "seasonal_naive_mae": None if seasonal is None else float(np.abs(seasonal - came).mean()),
        "coverage": float(((forecast.low <= came) & (came <= forecast.high)).mean()),
        "held_out": len(came),
    }
