"""Which family answers, what is said of the others, and whether intervals hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from app.kinds.forecasting.series import Series
from tests.workers.estimators.forecasting.planted import HOUR, daily, wandering
from workers.estimators.forecasting.back_test import forecaster
from workers.estimators.forecasting.families import ARIMA, DAY_BEFORE, LAST, QUICK, STACKED, WEEK_BEFORE
from workers.estimators.forecasting.told import errors


def mae(report: dict, horizon: int, family: str) -> float:  # type: ignore[type-arg]
    """What a family erred by, as the report says."""
    return next(one["mae"] for one in report["horizons"][horizon]["candidates"] if one["family"] == family)


def test_a_daily_course_is_learned() -> None:
    series = daily(40)
    made, report = forecaster("jobs", series.until(30 * 24), (1, 12), 0, QUICK)

    told = made.expected(series, np.arange(30 * 24 - 1, 40 * 24 - 13))

    for place, ahead in enumerate((1, 12)):
        came = series.counts[30 * 24 - 1 + ahead :][: len(told.median)]
        error, chance = np.abs(told.median[:, place] - came).mean(), np.sqrt(2 * came / np.pi).mean()
        assert error < 1.15 * chance  # of a Poisson variable whose mean is known
        inside = ((told.low[:, place] <= came) & (came <= told.high[:, place])).mean()
        assert abs(inside - 0.9) < 3 * np.sqrt(0.09 / len(came)) + 0.02
        assert told.mean[:, place].mean() == pytest.approx(came.mean(), rel=0.05)
        assert report["horizons"][place]["family"] in (ARIMA, STACKED)
        assert mae(report, place, ARIMA) < mae(report, place, DAY_BEFORE) < mae(report, 1, LAST)


def test_what_wanders_is_told_by_what_came_last() -> None:
    _, report = forecaster("jobs", wandering(900), (1,), 0, QUICK)

    best = report["horizons"][0]["candidates"][0]["mae"]
    assert mae(report, 0, LAST) < 1.03 * best
    assert mae(report, 0, DAY_BEFORE) > 2 * best


def test_the_least_error_answers_at_each_horizon() -> None:
    rng = np.random.default_rng(0)
    week = np.repeat(rng.poisson(50, 24 * 7), 1).astype(np.float64)  # the same each week, hour by hour
    _, report = forecaster("jobs", Series(np.tile(week, 8), 0.0, HOUR), (1, 24), 0, QUICK)

    assert [one["family"] for one in report["horizons"]] == [WEEK_BEFORE, WEEK_BEFORE]
    assert [one["candidates"][0]["mae"] for one in report["horizons"]] == pytest.approx([0.0, 0.0], abs=1e-9)
    assert all(sum(c["chosen"] for c in one["candidates"]) == 1 for one in report["horizons"])


def test_a_short_series_is_told_by_what_it_can_carry() -> None:
    made, report = forecaster("jobs", wandering(60), (1, 6, 24), 0)

    assert made.horizons == (1, 6)  # a day is more than an eighth of it
    assert {c["family"] for c in report["horizons"][0]["candidates"]} == {LAST}


@pytest.mark.parametrize("rate", [0.7, 30.0])
def test_a_mean_of_few_is_not_nothing(rate: float) -> None:
    """A short series is told by its last count, which is 0 here; what comes of it on average is not."""
    counts = np.random.default_rng(0).poisson(rate, 60).astype(np.float64)
    counts[-1] = 0.0 if rate < 1 else rate
    made, _ = forecaster("jobs", Series(counts, 0.0, HOUR), (1, 6), 0)
    assert made.ahead().mean == pytest.approx(counts.mean(), abs=4 * np.sqrt(rate / 15))  # the last quarter is judged
    assert np.all(made.ahead().mean > rate / 3)


def test_bounds_hold_nine_of_ten_of_new_errors() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        came = np.log1p(rng.poisson(20, 60))
        low, high, *_ = errors(np.full(59, 3.0), came[:59], 1.0)
        inside.append(low <= came[59] - 3.0 <= high)

    assert np.mean(inside) >= 0.9 - 3 * np.sqrt(0.09 / 400)
