"""Arrivals: rate by time of day, burstiness, forecasts; planted logs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.kinds.columns import MICRO
from app.kinds.inference.model import CAME, DAY_SECONDS, TYPICAL, WEIGHT, bounds, usual_rate
from app.kinds.inference.samples import Requests
from tests.workers.kinds.inference.systems import layout, service, world
from workers.estimators.base import Floats
from workers.kinds.inference.estimation.arrivals import (
    DATED,
    MOST_INTERVALS,
    PARTS,
    Arrivals,
    Counts,
    Series,
    back_test,
    count_requests,
    dispersion,
    fit_arrivals,
    latest,
    parts_of_variation,
    profile,
    series,
    smooth_exponentially,
    variation,
)
from workers.kinds.inference.simulator import kernels

CONTROL = 60.0


def planted(days: float, seed: int = 0, *, gamma: float = 0.0, level: float = 5.0) -> Series:
    """A day's wave, Poisson, whose rate varies by a gamma variable of that squared coefficient of variation."""
    rng, times = np.random.default_rng(seed), np.arange(0.0, days * DAY_SECONDS, CONTROL)
    rate = wave(times, level)
    if gamma:
        rate = rate * rng.gamma(1 / gamma, gamma, len(rate))
    return Series(rng.poisson(rate * CONTROL) / CONTROL, times, CONTROL, daily=True)


def wave(times: Floats, level: float = 5.0) -> Floats:
    return level * (1 + 0.8 * np.sin(2 * np.pi * times / DAY_SECONDS))


def walking(days: float) -> Series:
    """A rate that wanders slowly, without a wave."""
    rng, count = np.random.default_rng(3), int(days * DAY_SECONDS / CONTROL)
    level = np.zeros(count)
    for i in range(1, count):
        level[i] = 0.999 * level[i - 1] + 0.02 * rng.standard_normal()
    rate = 5 * np.exp(level)
    return Series(rng.poisson(rate * CONTROL) / CONTROL, np.arange(0.0, CONTROL * count, CONTROL), CONTROL, daily=True)


class TestProfile:
    """Rates by part of the day."""

    def test_a_planted_wave_is_found_within_its_error(self) -> None:
        middles = (np.arange(PARTS) + 0.5) * DAY_SECONDS / PARTS
        expected = wave(middles)
        error = np.sqrt(expected / (7 * DAY_SECONDS / PARTS))
        assert (np.abs(profile([planted(7)]) - expected) < 4 * error + 0.1).all()

    def test_days_that_have_no_shape_in_common_give_a_flatter_one_than_they_show(self) -> None:
        log = walking(3)
        raw = log.rate[: 3 * 1440].reshape(3, PARTS, -1).mean(axis=(0, 2))
        assert profile([log]).std() < 0.8 * raw.std()

    def test_one_rate_where_nothing_tells_of_times_of_day(self) -> None:
        log = planted(0.2)._replace(daily=False)
        assert profile([log]) == pytest.approx([log.rate.mean()])

    def test_parts_of_the_day_that_were_not_seen_have_the_mean(self) -> None:
        log = planted(0.75)
        result = profile([log])
        assert result[-1] == pytest.approx(log.rate.mean())
        assert (result > 0).all()


class TestBurstiness:
    """How counts vary about the profile."""

    def test_a_poisson_process_has_an_index_of_dispersion_of_1(self) -> None:
        log = planted(5)
        count = len(log.rate)
        assert dispersion([log], profile([log])) == pytest.approx(1.0, abs=0.3)
        assert variation([log], profile([log])) < 4 * np.sqrt(2 / count) / (5 * CONTROL) + 0.002

    def test_a_planted_variation_is_found(self) -> None:
        log = planted(5, gamma=0.3)
        assert variation([log], profile([log])) == pytest.approx(0.3, rel=0.15)


def bursts(seconds: int, seed: int, parts: tuple[float, ...], level: float = 20.0) -> Floats:
    """Requests in each second; the rate's factors hold for 1, 10, 60 and 600 s."""
    rng, rate = np.random.default_rng(seed), np.full(seconds, level)
    for part, lasting in zip(parts, (1, 10, 60, 600), strict=True):
        if part:
            rate = rate * np.repeat(rng.gamma(1 / part, part, seconds // lasting + 1), lasting)[:seconds]
    return rng.poisson(rate).astype(float)


def by(counts: Floats, seconds: int) -> Series:
    whole = len(counts) // seconds * seconds
    rate = counts[:whole].reshape(-1, seconds).mean(axis=1)
    return Series(rate, np.arange(0.0, seconds * len(rate), seconds), float(seconds), daily=False)


class TestParts:
    """Bursts and slow changes apart."""

    @pytest.mark.parametrize("parts", [(0.4, 0, 0, 0), (0, 0.3, 0, 0), (0, 0, 0.3, 0), (0.3, 0, 0.2, 0)])
    def test_planted_parts_are_found(self, parts: tuple[float, ...]) -> None:
        fine = by(bursts(80_000, 1, parts), 1)
        values = parts_of_variation([fine], np.array([fine.rate.mean()]))
        assert values == pytest.approx(parts, abs=0.05)

    def test_a_poisson_process_has_none(self) -> None:
        fine = by(bursts(80_000, 1, (0, 0, 0, 0)), 1)
        assert parts_of_variation([fine], np.array([fine.rate.mean()])).max() < 0.003

    def test_of_a_short_log_only_short_parts_are_told(self) -> None:
        fine = by(bursts(300, 1, (0.3, 0, 0, 0)), 1)
        assert parts_of_variation([fine], np.array([fine.rate.mean()]))[2:].tolist() == [0, 0]

    @pytest.mark.parametrize("parts", [(0.4, 0, 0, 0), (0, 0.2, 0.1, 0), (1.0, 0, 0.3, 0.05), (0, 0, 0, 0)])
    def test_requests_drawn_from_the_fit_are_as_dispersed_as_those_held_out(self, parts: tuple[float, ...]) -> None:
        """Indices of dispersion at 1 s and at 1 min: within a quarter of those of later days of the log."""
        counts = bursts(240_000, 4, parts)
        log, later = counts[:120_000], by(counts[120_000:], 1)
        fitted = fit_arrivals([by(log, 10)], [by(log, 1)])
        for intervals in (1, 60):
            wanted = dispersion([later], np.array([later.rate.mean()]), intervals)
            assert drawn_dispersion(fitted, intervals) == pytest.approx(wanted, rel=0.25), intervals


def drawn_dispersion(fitted: Arrivals, seconds: int) -> float:
    """Index of dispersion of what the simulator draws of a fit in so many seconds; control intervals of 10 s."""
    result = layout(episode_seconds=seconds, control_seconds=10)
    simulated = world(
        result, replace(service(result, 1e-6), rate=fitted.rate[None], parts=fitted.parts[None]), 6_000, seed=5
    )
    simulated.reset()
    counts = simulated.worlds.counts[:, kernels.REQUESTS]
    return float(counts.var() / counts.mean())


def judged(log: Series) -> dict[str, Any]:
    """What the back-test of a log that is long enough says."""
    result = back_test(log)
    assert result is not None
    return result


class TestForecasts:
    """What the last minutes and the time of day say of what comes."""

    def test_a_wave_is_forecast_better_than_by_the_last_value(self) -> None:
        near = judged(planted(6))
        assert near["mae"] < near["last_value_mae"]
        assert near["coverage"] == pytest.approx(0.9, abs=0.04)
        assert near["held_out"] == pytest.approx(6 * 1440 / 4, abs=2)

    def test_the_interval_of_what_is_usual_holds_without_rates_of_late(self) -> None:
        log = planted(8)
        cut = 6 * 1440
        fitted = fit_arrivals([log.until(cut)])
        numbers, later = fitted.numbers[1], log.since(cut)
        reported = bounds(numbers[TYPICAL] * usual_rate(fitted.rate, later.times), CONTROL, numbers)
        assert ((reported.low <= later.rate) & (later.rate <= reported.high)).mean() == pytest.approx(0.9, abs=0.04)
        assert numbers[WEIGHT] == 0

    def test_a_change_that_goes_on_is_forecast_better_than_by_the_last_value(self) -> None:
        rng, count = np.random.default_rng(6), 3_000
        change = np.zeros(count)
        for i in range(1, count):
            change[i] = 0.7 * change[i - 1] + rng.standard_normal()
        rate = 200 + np.cumsum(change) - np.linspace(0, change.sum(), count)
        near = judged(Series(np.maximum(rate, 0), np.arange(0.0, CONTROL * count, CONTROL), CONTROL, daily=False))
        assert near["mae"] < 0.85 * near["last_value_mae"]

    def test_a_rate_that_wanders_is_followed(self) -> None:
        near = judged(walking(3))
        assert near["mae"] < 1.02 * near["last_value_mae"]
        assert near["mae"] < 0.7 * near["seasonal_naive_mae"]

    def test_a_log_that_is_too_short_has_no_forecasts(self) -> None:
        log = planted(0.01)
        assert back_test(log) is None
        assert np.isfinite(fit_arrivals([log]).numbers).all()

    @pytest.mark.parametrize("level", [0.0, 1e-3])
    def test_a_user_who_never_or_hardly_comes_has_finite_numbers(self, level: float) -> None:
        arrivals = fit_arrivals([planted(1, level=level)])
        assert np.isfinite(arrivals.numbers).all()
        assert np.isfinite(arrivals.rate).all()
        assert np.isfinite(arrivals.variation)

    @pytest.mark.parametrize("seed", range(3))
    def test_what_comes_where_nothing_was_expected_is_over_a_request_an_interval(self, seed: int) -> None:
        """Bursts that end in silence: forecasts come down to 0, and what came over them would be without bounds."""
        rng, count = np.random.default_rng(seed), 400
        bursts = np.repeat(rng.random(count // 4) < 0.3, 4)
        requests = rng.poisson(np.where(bursts, 30.0 * rng.random(count), 0.3))
        times = np.arange(0.0, CONTROL * count, CONTROL)
        numbers = fit_arrivals([Series(requests / CONTROL, times, CONTROL, daily=False)]).numbers
        assert (numbers[:, CAME] <= requests.max()).all()

    def test_smoothed_rates_begin_with_the_first_and_forget_by_the_window(self) -> None:
        values = np.array([2.0, 2.0, 10.0, 10.0])
        assert smooth_exponentially(values, 1.0, 0.0).tolist() == values.tolist()
        exp = np.exp(-1 / 5)
        expected = [2.0, 2.0, 2 * exp + 10 * (1 - exp), (2 * exp + 10 * (1 - exp)) * exp + 10 * (1 - exp)]
        assert smooth_exponentially(values, 1.0, 5.0) == pytest.approx(expected)


class TestCounts:
    """Logs by control intervals."""

    def test_requests_are_counted_by_user_and_interval_and_the_last_is_left_out(self) -> None:
        time = np.array([3.0, 4.0, 11.0, 12.0, 34.0]) * MICRO
        log = Requests(time.astype(np.int64), np.array([0, 1, 0, 0, 1], np.uint8), np.full(5, np.nan))
        [result] = count_requests([log], 2, 10.0)
        assert result.counts.tolist() == [[1, 2, 0], [1, 0, 0]]
        assert (result.start, result.daily, result.times.tolist()) == (0.0, False, [0.0, 10.0, 20.0])

    def test_what_runs_leave_counts_only_where_no_log_tells_of_times_of_day(self) -> None:
        run = Counts(np.full((1, 5), 600.0), 0.0, CONTROL)
        day = Counts(planted(1).rate[None] * CONTROL, DATED, CONTROL)
        assert [one.daily for one in series([run, day], 0)] == [True]
        assert len(series([run, run], 0)) == 2
        assert fit_arrivals(series([run, run], 0)).rate == pytest.approx([10.0])

    def test_a_dated_log_tells_of_times_of_day_however_short(self) -> None:
        log = Requests(np.array([DATED * 17, DATED * 17 + 20], np.int64) * MICRO, np.zeros(2, np.uint8), np.zeros(2))
        assert count_requests([log], 1, 10.0)[0].daily

    def test_the_end_of_a_log_is_what_came_last(self) -> None:
        time = np.array([3.0, 4.0, 11.0, 12.0, 34.0]) * MICRO
        log = Requests(time.astype(np.int64), np.array([0, 1, 0, 0, 1], np.uint8), np.full(5, np.nan))
        assert latest(log, 25.0).user.tolist() == [0, 0, 1]
        assert latest(log, 100.0).user.tolist() == log.user.tolist()

    def test_a_log_whose_clock_jumped_is_cut_at_the_silence(self) -> None:
        time = np.concatenate([np.arange(0.0, 100.0), [2e8], [2e8 + 1e8 + one for one in range(100)]]) * MICRO
        log = Requests(time.astype(np.int64), np.zeros(201, np.uint8), np.zeros(201))
        early, late = count_requests([log], 1, 10.0)
        assert early.counts.tolist() == late.counts.tolist() == [[10.0] * 9]
        assert (early.daily, late.daily, early.start) == (False, False, 0.0)

    def test_a_weekend_of_silence_counts_and_of_a_very_long_log_the_end_alone_is_read(self) -> None:
        def log(*times: float) -> Requests:
            count = len(times)
            return Requests((np.array(times) * MICRO).astype(np.int64), np.zeros(count, np.uint8), np.zeros(count))

        assert count_requests([log(0, 3 * DAY_SECONDS)], 1, 3600.0)[0].counts.tolist() == [[1.0] + [0.0] * 71]
        [end] = count_requests([log(0, 100_000, 105_000)], 1, 0.01)
        assert (end.counts.shape, end.counts.sum()) == ((1, 500_000), 1)
        sparse = log(*np.arange(600) * 6.5 * DAY_SECONDS)
        [cut] = count_requests([sparse], 1, 10.0)
        assert cut.counts.shape[1] <= MOST_INTERVALS + 1
