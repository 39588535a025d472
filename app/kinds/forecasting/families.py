"""Families of forecasters, as they are served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.series import (
    DAY,
    WEEK,
    Floats,
    Integers,
    Series,
    calendar,
    recent_features,
    seasonal,
    seasonal_features,
    unscale,
)

# ARIMA around a daily and weekly profile: recursion of innovations, and forecasts from every origin.


class Arima(Struct, frozen=True, eq=False, tag=True):
    """Fitted ARIMA model of p past values and q past innovations (Box and Jenkins, 1970); differencing is part of
    ``ar``.

    Attributes:
        horizons: intervals after the origin.
        seasons: day and week of the calendar, in intervals.
        course: coefficients of the K columns of the calendar.
        ar, ma: coefficients of past deviations from the profile and of past innovations, newest first, [p] and [q].
    """

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    course: Floats
    ar: Floats
    ma: Floats

    def usual(self, series: Series, more: int = 0) -> Floats:
        """Return the log-scale count expected by the calendar in n intervals of a series and ``more`` after it, [n +
        more]."""
        times = series.start + series.seconds * np.arange(len(series.counts) + more)
        return np.asarray(calendar(times, self.seasons) @ self.course)

    def innovations(self, rest: Floats) -> Floats:
        """Return one-step-ahead prediction errors, [n], of the log-scale deviations ``rest`` [n] from the profile;
        earlier deviations and errors count as 0."""
        ma = self.ma.tolist()
        forecast_values = np.convolve(rest, np.append(0.0, self.ar))[: len(rest)]
        values: list[float] = [0.0] * len(ma)
        for value in (rest - forecast_values).tolist():
            values.append(value - sum(share * past for share, past in zip(ma, reversed(values), strict=False)))
        return np.array(values[len(ma) :])

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        most, values = max(self.horizons), series.scaled
        usual = self.usual(series, most)
        rest = values - usual[: len(values)]
        ahead = self._ahead(rest, self.innovations(rest), origins, most)
        at = np.array(self.horizons)
        return np.asarray(ahead[:, at - 1] + usual[origins[:, None] + at])

    def _ahead(self, rest: Floats, innovations: Floats, origins: Integers, most: int) -> Floats:
        past, shocks = _before(rest, origins, len(self.ar)), _before(innovations, origins, len(self.ma))
        forecast_values = np.zeros((len(origins), most))
        for step in range(most):
            forecast_values[:, step] = past @ self.ar + shocks[:, : max(len(self.ma) - step, 0)] @ self.ma[step:]
            past = np.concatenate([forecast_values[:, step : step + 1], past[:, :-1]], axis=1) if len(self.ar) else past
        return forecast_values


def _before(values: Floats, origins: Integers, count: int) -> Floats:
    """Return the last ``count`` values at each of m origins, newest first, [m, count]; 0 before the first."""
    at = origins[:, None] - np.arange(count)
    return np.where(at >= 0, values[np.maximum(at, 0)], 0.0)


# Gated recurrent network over the last intervals (Cho et al., 2014), alone or on the residuals of an ARIMA model.


WINDOW = 48  # intervals that the network reads up to each origin
AT_ONCE = 2_000


class Weights(NamedTuple):
    """Parameters of a network with F inputs, N units and H horizons, named as in torch; gates in the order reset,
    update, new.

    Attributes:
        weight_ih, weight_hh: gates' weights of the inputs, [3N, F], and of the previous units, [3N, N].
        bias_ih, bias_hh: gates' constants, [3N] each.
        weight: output weights of units and last inputs, [H, N + F].
        bias: constant of each output, [H].
    """

    weight_ih: Floats
    weight_hh: Floats
    bias_ih: Floats
    bias_hh: Floats
    weight: Floats
    bias: Floats

    def ahead(self, windows: Floats) -> Floats:
        """Return forecasts minus the baseline's at H horizons, in ``Gru.spread`` of log-scale counts, [m, H], for m
        windows of W intervals with F inputs, [m, W, F]."""
        state = np.zeros((len(windows), self.weight_hh.shape[1]))
        for inputs in windows.swapaxes(0, 1):
            parts = np.split(inputs @ self.weight_ih.T + self.bias_ih, 3, axis=1)
            recurrent = np.split(state @ self.weight_hh.T + self.bias_hh, 3, axis=1)
            reset, update = (1 / (1 + np.exp(-(parts[gate] + recurrent[gate]))) for gate in (0, 1))
            state = (1 - update) * np.tanh(parts[2] + reset * recurrent[2]) + update * state
        return np.concatenate([state, windows[:, -1]], axis=1) @ self.weight.T + self.bias


class Inputs(NamedTuple):
    """F inputs of order 1 of each of n intervals, ``read`` [n, F], and log-scale baseline forecasts at H horizons after
    m origins, ``base`` [m, H]."""

    read: Floats
    base: Floats


class Gru(Struct, frozen=True, eq=False, tag=True):
    """Fitted ensemble of gated recurrent networks.

    Attributes:
        horizons: intervals after the origin.
        seasons: day and week, in intervals.
        middle, spread: location and scale that standardise log-scale counts.
        members: networks whose mean is the forecast.
        arima: model whose forecasts they correct; None: they forecast alone.
    """

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    middle: float
    spread: float
    members: tuple[Weights, ...]
    arima: Arima | None

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        inputs = network_inputs(self, series, origins)
        steps = np.arange(1 - WINDOW, 1)
        forecasts = [
            np.mean([one.ahead(_windows(inputs.read, some[:, None] + steps)) for one in self.members], axis=0)
            for some in _pieces(np.asarray(origins))
        ]
        return np.asarray(inputs.base + self.spread * np.concatenate(forecasts))


def network_inputs(gru: Gru, series: Series, origins: Integers) -> Inputs:
    """Return the network's inputs of every interval of ``series``, and baseline forecasts at m ``origins``."""
    values, every = series.scaled, np.arange(len(series.counts))
    dated = calendar(series.times, gru.seasons)[:, 1:]
    columns = [values[:, None], *(seasonal_features(values, every, ahead, gru.seasons) for ahead in gru.horizons)]
    base = np.full((len(values), len(gru.horizons)), gru.middle)
    standard = [(column - gru.middle) / gru.spread for column in columns]
    if gru.arima is not None:
        base = gru.arima.medians(series, every)
        rest = values - gru.arima.usual(series)
        standard += [gru.arima.innovations(rest)[:, None] / gru.spread, (base - gru.middle) / gru.spread]
    return Inputs(np.concatenate([*standard, dated], axis=1), base[origins])


def _windows(inputs: Floats, at: Integers) -> Floats:
    """Return the ``inputs`` [n, F] at the W intervals ``at`` [m, W] of each of m windows, as [m, W, F]; 0 for intervals
    before the first."""
    return np.where((at >= 0)[..., None], inputs[np.maximum(at, 0)], 0.0)


def _pieces(origins: Integers) -> Iterator[Integers]:
    for first in range(0, len(origins), AT_ONCE):
        yield origins[first : first + AT_ONCE]


# Gradient-boosted trees, one ensemble per horizon, on recent values, seasonal lags and the calendar.


LAGS, SPANS = 12, (3, 6, 12, 24, 72)
LEAF = -1


class Trees(NamedTuple):
    """T trees of at most N nodes each; the prediction is the sum of their leaves.

    Attributes:
        start: constant prediction before any tree.
        left, right: child nodes, ``LEAF`` if none, [T, N].
        feature: index of the feature compared, [T, N].
        threshold: largest value of that feature that goes left, [T, N].
        value: prediction of a leaf, [T, N].
    """

    start: Floats
    left: Integers
    right: Integers
    feature: Integers
    threshold: Floats
    value: Floats

    def predict(self, features: Floats) -> Floats:
        """Return the prediction, [m], for each of m rows of F ``features``, [m, F]."""
        rows, trees = np.arange(len(features))[:, None], np.arange(len(self.left))
        node = np.zeros((len(features), len(self.left)), np.int64)
        while (inner := self.left[trees, node] != LEAF).any():
            low = features[rows, self.feature[trees, node]] <= self.threshold[trees, node]
            node = np.where(inner, np.where(low, self.left[trees, node], self.right[trees, node]), node)
        return np.asarray(self.start + self.value[trees, node].sum(axis=1))


class Boosting(Struct, frozen=True, eq=False, tag=True):
    """Fitted gradient-boosted ``trees``, one ensemble per horizon; ``horizons`` and ``seasons`` are in intervals."""

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    trees: tuple[Trees, ...]

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        forecasts = [
            trees.predict(features(series, origins, ahead, self.seasons))
            for ahead, trees in zip(self.horizons, self.trees, strict=True)
        ]
        return np.stack(forecasts, axis=1)


def features(series: Series, origins: Integers, ahead: int, seasons: tuple[int, ...]) -> Floats:
    """Return inputs of the trees for the interval ``ahead`` after each of m ``origins`` (positions in ``series``), as
    [m, F].

    The columns are the last ``LAGS`` log-scale counts, newest first; their means over the last ``SPANS`` intervals; the
    counts one season before, and the mean at that time in the last 7 of the first season (none without ``seasons``);
    the time of day, 0 to 1; and the day, 0 (Thursday) to 6. ``ahead`` and ``seasons`` are in intervals. Values are
    rounded to single precision, as in scikit-learn.

    Raises:
        IndexError: an origin is after the series' end.
    """
    values = series.scaled
    then = series.start + series.seconds * (origins + ahead)
    dated = np.stack([then % DAY / DAY, then % WEEK // DAY], axis=1)
    columns = [recent_features(values, origins, LAGS, SPANS), seasonal_features(values, origins, ahead, seasons), dated]
    return np.concatenate(columns, axis=1).astype(np.float32).astype(np.float64)


# Families without a fit: the last value, and the value one season before.


class Last(Struct, frozen=True, eq=False, tag=True):
    """Naive forecast: the last known count, at all ``horizons`` (intervals)."""

    horizons: tuple[int, ...]

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        return np.repeat(series.scaled[origins, None], len(self.horizons), axis=1)


class Seasonal(Struct, frozen=True, eq=False, tag=True):
    """Seasonal naive forecast: the count one season before; ``horizons`` and ``season`` are in intervals."""

    horizons: tuple[int, ...]
    season: int

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        values = series.scaled
        return np.stack([seasonal(values, origins, ahead, self.season) for ahead in self.horizons], axis=1)


# Stacking: a weighted mean of families' counts (Wolpert, “Stacked generalization”, 1992).


Family = Last | Seasonal | Arima | Gru | Boosting


class Stacked(Struct, frozen=True, eq=False, tag=True):
    """Stack of F fitted families, for H horizons.

    Attributes:
        horizons: intervals after the origin, [H].
        families: the fitted families.
        weights: weight of each family at each horizon, 0 or more, with sum 1 where the stack is used, [H, F].
    """

    horizons: tuple[int, ...]
    families: tuple[Family, ...]
    weights: Floats

    def medians(self, series: Series, origins: Integers) -> Floats:
        """Return medians of ln(1 + count / series.unit), [m, H], at H horizons after intervals ``origins`` [m]."""
        forecast_values = np.stack([unscale(family.medians(series, origins), series.unit) for family in self.families])
        return np.asarray(np.log1p(np.einsum("hf,fmh->mh", self.weights, forecast_values) / series.unit), np.float64)
