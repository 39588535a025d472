"""Intervals: against closed forms, and how often those of few clusters hold what is true."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from workers.evaluation.statistics import (
    LOOKS,
    confidence_at,
    estimate,
    interquartile,
    interquartile_mean,
    jackknife,
    mean_interval,
    profile,
    share_interval,
    wins,
)

Floats = NDArray[np.float64]
SEEDS, EPISODES = 5, 64
BY_SEED = np.repeat(np.arange(SEEDS), EPISODES)
TRIED = 400
SAID = (0.95 - 4 * (0.05 * 0.95 / TRIED) ** 0.5, 0.95 + 4 * (0.05 * 0.95 / TRIED) ** 0.5)  # four standard errors


def covered(intervals: Callable[[Floats], tuple[float, float, float]], truth: float, skewed: bool = False) -> float:
    """How often intervals of five seeds of episodes hold ``truth``, 0 without, where episodes of a seed are alike."""
    rng, result = np.random.default_rng(1), 0
    for _ in range(TRIED):
        own = rng.normal(0, 1, (SEEDS, EPISODES))
        values = rng.normal(0, 0.5, (SEEDS, 1)) + (np.exp(own) if skewed else own)
        _, low, high = intervals(values.ravel())
        result += low <= truth <= high
    return result / TRIED


def test_clusters_of_one_size_have_student_s_interval_of_their_means() -> None:
    values = np.random.default_rng(0).normal(size=(4, 6))
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values.mean(axis=1)))
    result = mean_interval(values.ravel(), np.repeat([7, 3, 9, 1], 6))
    assert result == pytest.approx({"mean": values.mean(), "low": low, "high": high})
    assert estimate(values.ravel()).freedom == pytest.approx(23)
    assert mean_interval(values.ravel(), np.zeros(24, np.intp)) == {
        "mean": values.mean(),
        "low": -np.inf,
        "high": np.inf,
    }


def test_clusters_of_several_sizes_have_fewer_degrees_of_freedom() -> None:
    """One of four has most of the episodes: Bell and McCaffrey's are those of less than three clusters."""
    values = np.random.default_rng(0).normal(size=40)
    result = estimate(values, np.repeat(np.arange(4), [28, 4, 4, 4]))
    sums = np.add.reduceat(values - values.mean(), [0, 28, 32, 36])
    assert result.error == pytest.approx(np.sqrt((sums**2 / (1 - np.array([28, 4, 4, 4]) / 40)).sum()) / 40)
    assert 1 < result.freedom < 2


def test_two_ways_to_vary_add_up() -> None:
    """Rows differ by 2, columns by 1: the squared errors of their means add up."""
    rows, columns = np.indices((4, 3)).reshape(2, -1)
    values = np.asarray(2.0 * rows + columns, np.float64)
    both = estimate(values, np.stack([rows, columns], axis=1))
    squares = [np.var([0, 2, 4, 6], ddof=1) / 4, np.var([0, 1, 2], ddof=1) / 3]
    assert both.error == pytest.approx(sum(squares) ** 0.5)
    assert both.freedom == pytest.approx(sum(squares) ** 2 / (squares[0] ** 2 / 3 + squares[1] ** 2 / 2))
    assert tuple(estimate(np.ones(12), np.stack([rows, columns], axis=1))) == pytest.approx((1, 0, 2))
    assert estimate(values, np.stack([rows, 0 * rows], axis=1)).freedom == 0, "one column can't tell"


@pytest.mark.parametrize("skewed", [False, True])
def test_of_five_seeds_a_mean_is_held_as_often_as_it_says(skewed: bool) -> None:
    truth = np.exp(0.5) if skewed else 0.0
    assert SAID[0] < covered(lambda values: estimate(values, BY_SEED).interval(), truth, skewed) < SAID[1]
    assert covered(lambda values: estimate(values).interval(), truth, skewed) < 0.7, "clusters matter"


def test_of_five_seeds_an_interquartile_mean_is_held_as_often_as_it_says() -> None:
    assert SAID[0] < covered(lambda values: interquartile(values, BY_SEED).interval(), 0.0) < SAID[1]


def test_of_five_seeds_a_share_is_held_about_as_often_as_it_says() -> None:
    above = covered(
        lambda values: share_interval((values > 1).astype(np.float64), BY_SEED), stats.norm.sf(1 / 1.25**0.5)
    )
    assert 0.90 < above < SAID[1]


@pytest.mark.parametrize("won", [0, 3, 40])
def test_a_share_of_independent_draws_has_jeffreys_s_interval(won: int) -> None:
    values = np.arange(40) < won
    interval = share_interval(values.astype(np.float64))
    low, high = stats.beta.ppf([0.025, 0.975], won + 0.5, 40 - won + 0.5)
    assert (interval.low, interval.mean) == pytest.approx((low if won else 0, won / 40), abs=0.01)
    assert interval.high == pytest.approx(high if won < 40 else 1, abs=0.01)
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1


def test_ten_seeds_that_won_throughout_say_as_much_as_ten_draws() -> None:
    """Not as much as their episodes: how much a seed's episodes vary together can't be seen."""
    for value in (0.0, 1.0):
        whole = share_interval(np.full(640, value), np.repeat(np.arange(10), 64))
        seeds = share_interval(np.full(10, value))
        assert whole == pytest.approx(seeds, abs=1e-9)


def test_later_looks_are_as_sure_as_the_last_that_is_counted() -> None:
    looks = [confidence_at(look) for look in (1, 2, LOOKS, LOOKS + 1, 1_000)]
    assert looks[:2] == pytest.approx([0.975, 1 - 0.05 / 6])
    assert looks[2] == looks[3] == looks[4] > looks[1]


def test_what_is_always_level_has_no_interval() -> None:
    assert share_interval(np.full(40, 0.5), np.arange(40) // 8) == pytest.approx((0.5, 0.5, 0.5), abs=1e-5)
    assert mean_interval(np.full(40, -0.5), np.arange(40) // 8) == {"mean": -0.5, "low": -0.5, "high": -0.5}
    assert share_interval(np.ones(8), np.zeros(8, np.intp)) == (1, 0, 1)


def test_a_jackknifed_mean_is_the_mean() -> None:
    values = np.random.default_rng(0).normal(size=12)
    left_out = np.array([np.delete(values, i).mean() for i in range(12)])
    assert jackknife(left_out, values.mean()) == pytest.approx(estimate(values))
    assert jackknife(left_out, values.mean(), 3.0).freedom == 3


def test_a_detectable_mean_is_detected_in_eight_of_ten_cases() -> None:
    """Of the standard error that is expected; 1,000 cases of 12 values: four standard errors are 5 %."""
    rng = np.random.default_rng(3)
    size = estimate(stats.norm.ppf((np.arange(12) + 0.5) / 12)).detectable()
    results = [estimate(rng.normal(size, 1, 12)).interval().low > 0 for _ in range(1_000)]
    assert np.mean(results) == pytest.approx(0.8, abs=0.06)
    assert estimate(np.ones(1)).detectable() == np.inf


def test_interquartile_mean_against_closed_forms() -> None:
    assert interquartile_mean(np.arange(8.0)) == pytest.approx(3.5)
    assert interquartile_mean(np.array([0.0, 1, 2, 3, 1e9, -1e9, 1.5, 1.5])) == pytest.approx(1.5)
    values = np.random.default_rng(0).normal(size=400)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))
    assert interquartile_mean(np.array([1.0, 2.0, 4.0])) == pytest.approx((0.25 * 1 + 2 + 0.25 * 4) / 1.5)


def test_ties_are_won_by_half() -> None:
    np.testing.assert_array_equal(wins(np.array([1.0, 2, 3]), np.array([2.0, 2, 2])), [0, 0.5, 1])


def test_a_profile_is_a_survival_function() -> None:
    rng = np.random.default_rng(1)
    scores = (rng.normal(2, 1, (SEEDS, EPISODES)) + rng.normal(0, 0.5, (SEEDS, 1))).ravel()
    tau = np.linspace(-3, 7, 21)
    share, low, high = profile(scores, tau, BY_SEED)
    np.testing.assert_allclose(share, [(scores > t).mean() for t in tau])
    assert (np.diff(share) <= 0).all()
    assert (share[0], share[-1]) == (1, 0)
    assert (low <= share).all()
    assert (share <= high).all()
