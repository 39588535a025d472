"""ARIMA (statsmodels) about a course over day and week."""

from __future__ import annotations

import warnings

import numpy as np

from app.kinds.forecasting.arima import Arima
from app.kinds.forecasting.series import Floats, Series, calendar, scaled, seasons

ORDERS = ((1, 0, 1), (2, 0, 1), (3, 0, 2))


def fit_arima(series: Series, horizons: tuple[int, ...]) -> Arima:
    """The order of the least AIC; the course by least squares first."""
    known = seasons(len(series.counts), series.seconds)
    dated, values = calendar(series.times, known), scaled(series.counts)
    course = np.asarray(np.linalg.lstsq(dated, values, rcond=None)[0], np.float64)
    ar, ma = _fitted(values - dated @ course)
    return Arima(horizons, known, course, ar, ma)


def _fitted(rest: Floats) -> tuple[Floats, Floats]:
    from statsmodels.tsa.arima.model import ARIMA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [ARIMA(rest, order=order, trend="n").fit() for order in ORDERS]
    best = min(found, key=lambda one: float(one.aic))
    return np.asarray(best.arparams, np.float64), np.asarray(best.maparams, np.float64)
