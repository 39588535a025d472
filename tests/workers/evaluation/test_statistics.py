import numpy as np
import pytest
from scipy import stats

from workers.evaluation.statistics import (
    Resamples,
    interquartile_mean,
    interval,
    probability_of_improvement,
    profile,
    wins,
)

SEEDS, EPISODES, RESAMPLES = 8, 64, 1500


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(0, 1, (SEEDS, 1)) * 0.5 + rng.normal(2, 1, (SEEDS, EPISODES))


@pytest.mark.parametrize("stratified", [True, False])
def test_every_resample_is_as_large_as_the_sample(stratified: bool) -> None:
    drawn = Resamples(3, 5, 50, np.random.default_rng(0), stratified=stratified)
    np.testing.assert_array_equal(drawn.counts.sum(axis=1), 15)
    by_seed = drawn.counts.reshape(50, 3, 5).sum(axis=2)
    assert (by_seed == 5).all() == stratified


def test_the_spread_of_resampled_means_is_the_closed_form(scores: np.ndarray) -> None:
    """Stratified: the variance of a mean of strata. Hierarchical: that of seed means, plus (nearly) the same once more.

    Tolerance: four standard errors of a variance of 1,500 draws, 4·√(2/1500) ≈ 15 %.
    """
    within = scores.var(axis=1).mean() / (SEEDS * EPISODES)
    between = scores.mean(axis=1).var() / SEEDS
    strata = Resamples(SEEDS, EPISODES, RESAMPLES, np.random.default_rng(2), stratified=True)
    both = Resamples(SEEDS, EPISODES, RESAMPLES, np.random.default_rng(3))
    assert strata.means(scores).var() == pytest.approx(within, rel=0.15)
    assert both.means(scores).var() == pytest.approx(within + between, rel=0.15)
    assert both.means(scores).mean() == pytest.approx(scores.mean(), abs=4 * (within + between) ** 0.5 / RESAMPLES**0.5)


def test_an_interval_covers_as_often_as_it_says() -> None:
    """150 samples of 20 seeds: 95 % ± 4 standard errors (1.8 % each), and a little less for the few seeds."""
    rng, covered = np.random.default_rng(5), 0
    for _ in range(150):
        sample = rng.normal(0, 0.3, (20, 1)) + rng.normal(0, 1, (20, 8))
        drawn = Resamples(20, 8, 300, rng).means(sample)
        found = interval(float(sample.mean()), drawn)
        covered += found.low <= 0 <= found.high
    assert 0.95 - 4 * 0.018 - 0.02 < covered / 150 <= 1


def test_what_never_changes_has_no_interval() -> None:
    drawn = Resamples(5, 3, 100, np.random.default_rng(0)).means(np.full((5, 3), -0.1))
    assert set(drawn) == {-0.1}


def test_paired_differences_are_sharper_than_each(scores: np.ndarray) -> None:
    drawn = Resamples(SEEDS, EPISODES, 400, np.random.default_rng(4))
    better = scores + 0.1
    np.testing.assert_allclose(drawn.means(better - scores), 0.1, rtol=1e-5)
    np.testing.assert_allclose(drawn.means(better) - drawn.means(scores), 0.1, rtol=1e-5)


def test_interquartile_mean_against_closed_forms() -> None:
    assert interquartile_mean(np.arange(8.0)) == pytest.approx(3.5)
    assert interquartile_mean(np.array([0.0, 1, 2, 3, 1e9, -1e9, 1.5, 1.5])) == pytest.approx(1.5)
    values = np.random.default_rng(0).normal(size=400)
    assert interquartile_mean(values) == pytest.approx(stats.trim_mean(values, 0.25))
    assert interquartile_mean(np.array([1.0, 2.0, 4.0])) == pytest.approx((0.25 * 1 + 2 + 0.25 * 4) / 1.5)


def test_resampled_interquartile_means_are_those_of_the_resamples(scores: np.ndarray) -> None:
    drawn = Resamples(SEEDS, EPISODES, 20, np.random.default_rng(6))
    expected = [interquartile_mean(np.repeat(scores.reshape(-1), c.astype(int))) for c in drawn.counts]
    np.testing.assert_allclose(drawn.interquartile_means(scores), expected, rtol=1e-5)


def test_probability_of_improvement_against_closed_forms() -> None:
    """Of two normals it is Φ(difference/√2) unpaired; the tolerance is four standard errors of U."""
    rng = np.random.default_rng(7)
    theirs, ours = rng.normal(0, 1, 2000), rng.normal(0.5, 1, 2000)
    u = stats.mannwhitneyu(ours, theirs).statistic
    assert probability_of_improvement(ours, theirs, paired=False) == pytest.approx(u / 2000**2)
    assert u / 2000**2 == pytest.approx(stats.norm.cdf(0.5 / 2**0.5), abs=4 * (1 / (6 * 2000)) ** 0.5)
    assert probability_of_improvement(ours, ours, paired=False) == 0.5
    assert probability_of_improvement(theirs + 0.001, theirs, paired=True) == 1.0
    np.testing.assert_array_equal(wins(np.array([1.0, 2, 3]), np.array([2.0, 2, 2])), [0, 0.5, 1])


def test_a_profile_is_a_survival_function(scores: np.ndarray) -> None:
    drawn = Resamples(SEEDS, EPISODES, 200, np.random.default_rng(8))
    tau = np.linspace(-3, 7, 21)
    share, low, high = profile(scores, tau, drawn)
    np.testing.assert_allclose(share, [(scores > t).mean() for t in tau])
    assert (np.diff(share) <= 0).all()
    assert share[0] == 1
    assert share[-1] == 0
    assert (low <= share + 1e-6).all()
    assert (share <= high + 1e-6).all()
