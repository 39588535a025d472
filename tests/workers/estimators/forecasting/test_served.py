"""What is served equals what was fitted: NumPy's forecasts beside those of statsmodels, torch and scikit-learn."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.ensemble import GradientBoostingRegressor
from statsmodels.tsa.arima import model as statsmodels

from app.kinds.forecasting.answer import deserialise, serialise
from app.kinds.forecasting.families import Arima
from app.kinds.forecasting.series import calendar
from tests.workers.estimators.forecasting.planted import daily, wandering
from workers.estimators.forecasting.back_test import forecaster
from workers.estimators.forecasting.families import ARIMA, LAST, export_trees
from workers.estimators.forecasting.gru import Network


def test_an_arima_forecasts_as_statsmodels_does() -> None:
    series = daily(30)
    dated, values = calendar(series.times, (24, 168)), series.scaled
    course = np.asarray(np.linalg.lstsq(dated, values, rcond=None)[0], np.float64)
    fitted = statsmodels.ARIMA((values - dated @ course)[:600], order=(2, 0, 1), trend="n").fit()
    served = Arima((1, 2, 7), (24, 168), course, fitted.arparams, fitted.maparams)

    forecast_values = served.medians(series, np.array([599, 640, 700]))

    for row, origin in zip(forecast_values, (599, 640, 700), strict=True):
        known = fitted.append((values - dated @ course)[600 : origin + 1]) if origin > 599 else fitted
        ahead = known.forecast(7)[[0, 1, 6]] + (dated @ course)[origin + np.array([1, 2, 7])]
        np.testing.assert_allclose(row, ahead, rtol=1e-6)


def test_a_network_forecasts_as_torch_does() -> None:
    torch.manual_seed(0)
    network = Network(5, 3)
    torch.nn.init.normal_(network.head.weight)
    windows = torch.randn(7, 20, 5)

    with torch.no_grad():
        expected = network.eval()(windows)[:, -1].numpy()

    np.testing.assert_allclose(network.exported().ahead(windows.double().numpy()), expected, rtol=1e-4, atol=1e-5)


def test_trees_forecast_as_scikit_learn_does() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 4)).astype(np.float32)
    wanted = features[:, 0] ** 2 + rng.normal(0, 0.1, 400)
    model = GradientBoostingRegressor(loss="absolute_error", n_estimators=20, random_state=0).fit(features, wanted)

    np.testing.assert_allclose(export_trees(model).predict(features.astype(np.float64)), model.predict(features))


def test_a_forecast_from_what_is_kept_equals_the_one_from_all_that_is_known() -> None:
    series = wandering(2_400)
    result, _ = forecaster("x", series.until(2_300), (1, 6), seed=0, names=(LAST, ARIMA))

    (again,) = deserialise(serialise([result]))
    served = again.ahead(series.counts[2_300:])

    for part, whole in zip(served, result.expected(series, np.array([2_399])), strict=True):
        np.testing.assert_allclose(part, whole[0], rtol=1e-9)
    assert len(again.history.counts) == 2_000
