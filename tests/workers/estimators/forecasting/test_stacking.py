"""Families that are weighed: what answers for them, and that the weights are those of the least error."""

from __future__ import annotations

import numpy as np
import pytest

from app.kinds.forecasting.answer import Forecaster, deserialise, serialise
from app.kinds.forecasting.families import Last, Seasonal, Stacked
from app.kinds.forecasting.series import unscale
from tests.workers.estimators.forecasting.planted import daily
from workers.estimators.forecasting.families import HorizonForecasts, cross_fitted, stacking_weights

FOLDS, ROWS = 3, 1_500


def with_errors(seed: int, *errors: float) -> dict[str, HorizonForecasts]:
    """Families that err by independent normal errors of these standard deviations, of counts about 1,000."""
    rng = np.random.default_rng(seed)
    came = [np.log1p(rng.uniform(900, 1_100, ROWS)) for _ in range(FOLDS)]
    return {
        f"{number}": HorizonForecasts([np.log1p(np.expm1(one) + rng.normal(0, sd, ROWS)) for one in came], came, 1.0)
        for number, sd in enumerate(errors)
    }


def test_independent_errors_are_weighed_by_their_precision() -> None:
    families = with_errors(0, 40.0, 20.0)
    weights = stacking_weights(families, range(FOLDS))
    assert weights.sum() == pytest.approx(1)
    assert weights[1] == pytest.approx(0.8, abs=0.06)  # precisions are as 1 to 4
    together = cross_fitted(families)
    assert together.error() == pytest.approx(20 * np.sqrt(0.8) * np.sqrt(2 / np.pi), rel=0.04)


def test_what_only_adds_noise_weighs_nothing() -> None:
    families = with_errors(1, 20.0)
    one = families["0"]
    rng = np.random.default_rng(2)
    families["noisier"] = HorizonForecasts(
        [np.log1p(np.expm1(m) + rng.normal(0, 60, ROWS)) for m in one.medians], one.came, 1.0
    )
    np.testing.assert_allclose(stacking_weights(families, range(FOLDS)), [1, 0], atol=0.03)
    assert cross_fitted(families).error() < 1.01 * one.error()


def test_a_fold_is_told_by_the_weights_of_the_others() -> None:
    families = with_errors(3, 20.0, 20.0)
    first, second = families.values()
    first.medians[0][:], second.medians[0][:] = first.came[0], 0.0  # in the first fold alone the one is right
    by_others = stacking_weights(families, [1, 2])
    expected = np.log1p(by_others[0] * np.expm1(first.came[0]))
    np.testing.assert_allclose(cross_fitted(families).medians[0], expected)
    assert stacking_weights(families, [0]) == pytest.approx([1, 0])


def test_what_is_kept_tells_counts_weighed() -> None:
    series = daily(10)._replace(unit=2.0)
    families = (Last((1, 6)), Seasonal((1, 6), 24))
    result = Stacked((1, 6), families, np.array([[0.25, 0.75], [1.0, 0.0]]))
    origins = np.array([100, 150])
    last, before = (unscale(one.medians(series, origins), 2.0) for one in families)
    counts = unscale(result.medians(series, origins), 2.0)
    np.testing.assert_allclose(counts[:, 0], 0.25 * last[:, 0] + 0.75 * before[:, 0])
    np.testing.assert_allclose(counts[:, 1], last[:, 1])
    forecaster = Forecaster("x", (1, 6), (0, 0), ("stacked",), (result,), np.zeros((2, 4)), series)
    (again,) = deserialise(serialise([forecaster]))
    np.testing.assert_array_equal(again.families[0].medians(series, origins), result.medians(series, origins))
