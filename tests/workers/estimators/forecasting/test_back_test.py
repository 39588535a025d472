"""Which family answers, what is said of the others, and whether intervals hold what they say."""

from __future__ import annotations

import numpy as np
import pytest

from app.kinds.forecasting.series import Floats, Series
from tests.workers.estimators.forecasting.planted import HOUR, daily, wandering
from workers.estimators.forecasting.back_test import DAILY, choose, daily_course, forecaster
from workers.estimators.forecasting.families import (
    ARIMA,
    DAY_BEFORE,
    HYBRID,
    LAST,
    QUICK,
    STACKED,
    WEEK_BEFORE,
    HorizonForecasts,
    errors,
)


def mae(report: dict, horizon: int, family: str) -> float:  # type: ignore[type-arg]
    """What a family erred by, as the report says."""
    return next(one["mae"] for one in report["horizons"][horizon]["candidates"] if one["family"] == family)


def test_a_daily_course_is_learned() -> None:
    series = daily(40)
    result, report = forecaster("jobs", series.until(30 * 24), (1, 12), 0, QUICK)

    forecast_values = result.expected(series, np.arange(30 * 24 - 1, 40 * 24 - 13))

    for place, ahead in enumerate((1, 12)):
        came = series.counts[30 * 24 - 1 + ahead :][: len(forecast_values.median)]
        error, chance = np.abs(forecast_values.median[:, place] - came).mean(), np.sqrt(2 * came / np.pi).mean()
        assert error < 1.15 * chance  # of a Poisson variable whose mean is known
        inside = ((forecast_values.low[:, place] <= came) & (came <= forecast_values.high[:, place])).mean()
        assert abs(inside - 0.9) < 3 * np.sqrt(0.09 / len(came)) + 0.02
        assert forecast_values.mean[:, place].mean() == pytest.approx(came.mean(), rel=0.05)
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


def test_what_is_reported_had_no_part_in_the_choice() -> None:
    """Each week is the same until the last two folds, which are drawn anew."""
    rng = np.random.default_rng(0)
    counts = np.tile(rng.poisson(50, 24 * 7).astype(np.float64), 12)
    later = len(counts) - len(counts) // 6
    counts[later:] = rng.permutation(counts[later:])
    result, report = forecaster("jobs", Series(counts, 0.0, HOUR), (1, 24), 0, QUICK)

    assert result.names == (WEEK_BEFORE,)
    for horizon in report["horizons"]:
        assert horizon["candidates"][0]["mae"] == pytest.approx(0.0, abs=1e-9)
        assert horizon["mae"] == pytest.approx(np.abs(np.diff(rng.choice(counts, (2, 20_000)), axis=0)).mean(), rel=0.2)
        assert horizon["held_out"] == len(counts) - later
        assert horizon["coverage"] < 0.6


def with_errors(errors: Floats) -> HorizonForecasts:
    """A family that errs so on two folds of equally many intervals, where 100 come."""
    came = np.full(len(errors) // 2, 100.0)
    medians = [100.0 + part for part in np.split(errors, 2)]
    return HorizonForecasts([np.log1p(one) for one in medians], [np.log1p(came)] * 2, 1.0)


CALM, BUSY = np.tile([1.0, 3.0], 60), np.repeat([0.5, 1.5, 0.6, 1.4, 0.8, 1.2, 0.7, 1.3, 0.9, 1.1], 12)


@pytest.mark.parametrize(
    ("excess", "daily", "answers"),
    [
        (0.05, False, LAST),  # within the standard error of the blocks' differences, .1
        (0.05, True, HYBRID),
        (0.2, False, ARIMA),
        (0.2, True, ARIMA),
    ],
)
def test_within_a_standard_error_the_hybrid_answers_by_day_and_else_the_simplest(
    excess: float, daily: bool, answers: str
) -> None:
    near = with_errors(CALM + excess + (BUSY - 1.0))
    families = {
        ARIMA: with_errors(CALM),
        HYBRID: near,
        LAST: near,
        STACKED: with_errors(CALM + 1.0),
        DAY_BEFORE: with_errors(CALM + 9.0),
    }
    assert choose(families, 1, daily=daily) == answers


def test_a_hybrid_is_no_better_than_others_where_it_was_not_tried() -> None:
    assert choose({ARIMA: with_errors(CALM), LAST: with_errors(CALM + 9.0)}, 1, daily=True) == ARIMA


def test_a_daily_course_is_one_that_comes_again() -> None:
    assert daily_course(daily(20)) > 0.5
    assert daily_course(wandering(480)) < DAILY
    assert daily_course(daily(5)) == 0.0  # half of it is too short to know a day


def test_a_short_series_is_told_by_what_it_can_carry() -> None:
    result, report = forecaster("jobs", wandering(60), (1, 6, 24), 0)

    assert result.horizons == (1, 6)  # a day is more than an eighth of it
    assert {c["family"] for c in report["horizons"][0]["candidates"]} == {LAST}


@pytest.mark.parametrize("rate", [0.7, 30.0])
def test_a_mean_of_few_is_not_nothing(rate: float) -> None:
    """A short series is told by its last count, which is 0 here; what comes of it on average is not."""
    counts = np.random.default_rng(0).poisson(rate, 60).astype(np.float64)
    counts[-1] = 0.0 if rate < 1 else rate
    result, _ = forecaster("jobs", Series(counts, 0.0, HOUR), (1, 6), 0)
    assert result.ahead().mean == pytest.approx(counts.mean(), abs=4 * np.sqrt(rate / 15))  # the last quarter is judged
    assert np.all(result.ahead().mean > rate / 3)


def test_bounds_hold_nine_of_ten_of_new_errors() -> None:
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(400):
        came = np.log1p(rng.poisson(20, 60))
        low, high, *_ = errors(np.full(59, 3.0), came[:59], 1.0)
        inside.append(low <= came[59] - 3.0 <= high)

    assert np.mean(inside) >= 0.9 - 3 * np.sqrt(0.09 / 400)
