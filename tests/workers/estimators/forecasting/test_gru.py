"""What a network on an ARIMA's residuals finds, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from app.kinds.forecasting.answer import Forward
from app.kinds.forecasting.series import Floats, Integers, Series, unscale
from tests.workers.estimators.forecasting.planted import HOUR
from workers.estimators.forecasting import gru
from workers.estimators.forecasting.families import fit_arima
from workers.estimators.forecasting.gru import fit_gru

KNOWN, COUNT = 600, 800


def tent(count: int) -> Series:
    """Counts that follow from the last one for certain, and with which they are not correlated: a tent map."""
    values = np.empty(count)
    values[0] = 0.37
    for place in range(1, count):
        values[place] = 0.9999 * (1 - abs(1 - 2 * values[place - 1]))
    return Series(np.round(20 * np.exp(values)), 0.0, HOUR / 7)  # of no calendar


def mae(family: Forward, series: Series) -> float:
    """One step ahead, of what was not fitted."""
    origins: Integers = np.arange(KNOWN, COUNT - 1)
    forecast_values: Floats = unscale(family.medians(series, origins)[:, 0], series.unit)
    return float(np.abs(forecast_values - series.counts[origins + 1]).mean())


def test_what_no_arima_can_tell_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gru, "MEMBERS", 1)
    series = tent(COUNT)
    arima = fit_arima(series.until(KNOWN), (1,))

    hybrid = fit_gru(series.until(KNOWN), (1,), 0, arima)

    assert mae(hybrid, series) < 0.4 * mae(arima, series)


@pytest.mark.slow
def test_chance_is_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gru, "MEMBERS", 1)
    series = Series(np.random.default_rng(0).poisson(30, COUNT).astype(np.float64), 0.0, HOUR / 7)
    arima = fit_arima(series.until(KNOWN), (1,))

    hybrid = fit_gru(series.until(KNOWN), (1,), 0, arima)

    assert mae(hybrid, series) < 1.05 * mae(arima, series)


def test_the_same_seed_gives_the_same_network_and_leaves_torchs_own_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gru, "MEMBERS", 2)
    monkeypatch.setattr(gru, "ROUNDS", 2)
    series = tent(200)
    torch.manual_seed(7)
    expected = torch.rand(1)
    torch.manual_seed(7)

    first, again = (fit_gru(series, (1, 3), 5) for _ in range(2))

    assert torch.equal(torch.rand(1), expected)
    for one, other in zip(first.members, again.members, strict=True):
        for part, same in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, same)
