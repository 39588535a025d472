"""A gated recurrent network over the last intervals (Cho et al., 2014): alone, or on what an ARIMA leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from app.kinds.forecasting.arima import Arima
from app.kinds.forecasting.series import Floats, Integers, Series, about, calendar, scaled

WINDOW = 48  # intervals that it reads before each forecast
AT_ONCE = 2_000


class Weights(NamedTuple):
    """As torch names them: F inputs, N units, H horizons; the gates are reset, update and new, in this order.

    Attributes:
        weight_ih: [3N, F].
        weight_hh: [3N, N].
        bias_ih, bias_hh: [3N].
        weight: of units and of the last inputs, [H, N + F].
        bias: [H].
    """

    weight_ih: Floats
    weight_hh: Floats
    bias_ih: Floats
    bias_hh: Floats
    weight: Floats
    bias: Floats

    def ahead(self, windows: Floats) -> Floats:
        """What comes after windows, [m, W, F] → [m, H]."""
        state = np.zeros((len(windows), self.weight_hh.shape[1]))
        for inputs in windows.swapaxes(0, 1):
            given = np.split(inputs @ self.weight_ih.T + self.bias_ih, 3, axis=1)
            kept = np.split(state @ self.weight_hh.T + self.bias_hh, 3, axis=1)
            reset, update = (1 / (1 + np.exp(-(given[gate] + kept[gate]))) for gate in (0, 1))
            state = (1 - update) * np.tanh(given[2] + reset * kept[2]) + update * state
        return np.concatenate([state, windows[:, -1]], axis=1) @ self.weight.T + self.bias


class Inputs(NamedTuple):
    """What a network reads of each interval, standardised, and what it corrects: [n, F] and [n, H]."""

    read: Floats
    base: Floats


class Gru(Struct, frozen=True, eq=False, tag=True):
    """A fitted network.

    Attributes:
        horizons: in intervals.
        seasons: in intervals.
        middle, spread: of scaled counts, by which they are standardised.
        members: networks whose mean answers.
        arima: what they correct; None: they forecast alone.
    """

    horizons: tuple[int, ...]
    seasons: tuple[int, ...]
    middle: float
    spread: float
    members: tuple[Weights, ...]
    arima: Arima | None

    def medians(self, series: Series, origins: Integers) -> Floats:
        """See ``Forecasting``."""
        inputs = read(self, series, origins)
        steps = np.arange(1 - WINDOW, 1)
        told = [
            np.mean([one.ahead(_windows(inputs.read, some[:, None] + steps)) for one in self.members], axis=0)
            for some in _pieces(np.asarray(origins))
        ]
        return np.asarray(inputs.base + self.spread * np.concatenate(told))


def read(gru: Gru, series: Series, origins: Integers) -> Inputs:
    """Of every interval what is read, and at ``origins`` what is corrected."""
    values, every = scaled(series.counts), np.arange(len(series.counts))
    dated = calendar(series.times, gru.seasons)[:, 1:]
    columns = [values[:, None], *(about(values, every, ahead, gru.seasons) for ahead in gru.horizons)]
    base = np.full((len(values), len(gru.horizons)), gru.middle)
    standard = [(column - gru.middle) / gru.spread for column in columns]
    if gru.arima is not None:
        base = gru.arima.medians(series, every)
        rest = values - gru.arima.usual(series)
        standard += [gru.arima.innovations(rest)[:, None] / gru.spread, (base - gru.middle) / gru.spread]
    return Inputs(np.concatenate([*standard, dated], axis=1), base[origins])


def _windows(inputs: Floats, at: Integers) -> Floats:
    """Inputs by window, [m, W, F]; 0 before the first."""
    return np.where((at >= 0)[..., None], inputs[np.maximum(at, 0)], 0.0)


def _pieces(origins: Integers) -> Iterator[Integers]:
    for first in range(0, len(origins), AT_ONCE):
        yield origins[first : first + AT_ONCE]
