"""The verdict on a trained agent: who may answer, and what is said of it."""

import numpy as np
import pytest
from numpy.typing import NDArray

from workers.evaluation.judge import Judgement, gap
from workers.evaluation.statistics import mean_interval

RANDOM = np.random.default_rng(0)
EPISODES = RANDOM.normal(-10.0, 3.0, 400)  # what luck makes of each; the same for everybody


def earns(more: float) -> NDArray[np.float64]:
    """Returns that lie above the episodes' own by so much, and a little luck of their own."""
    luck: NDArray[np.float64] = EPISODES + more + RANDOM.normal(0.0, 0.1, len(EPISODES))
    return luck


RULES = {"poor": earns(-2.0), "good": earns(0.0)}


def test_an_interval_is_the_mean_and_its_standard_errors() -> None:
    values = np.array([1.0, 2.0, 3.0, 6.0])
    half = 1.96 * np.sqrt(14 / 3) / 2
    assert mean_interval(values) == pytest.approx({"mean": 3.0, "low": 3.0 - half, "high": 3.0 + half})
    assert mean_interval(values[:1]) == {"mean": 1.0, "low": -np.inf, "high": np.inf}


@pytest.mark.parametrize(
    ("agent", "champion", "promoted", "said"),
    [
        (1.0, None, True, "promoted: return"),
        (0.0, None, False, "not at least as good with 95 % confidence"),
        (-1.0, None, False, "the heuristic goes on answering"),
        (1.0, 0.5, True, "promoted: return"),
        (1.0, 1.0, False, "not better than the present champion"),
        (1.0, 1.5, False, "not better than the present champion (difference -0.5"),
        (-1.0, -1.5, False, "the heuristic goes on answering"),
    ],
)
def test_who_is_as_good_as_the_rules_and_better_than_the_champion_may_answer(
    agent: float, champion: float | None, promoted: bool, said: str
) -> None:
    ours = earns(agent) if agent else np.where(np.arange(len(EPISODES)) % 2, RULES["good"] - 1, RULES["good"] + 1)
    theirs = None if champion is None else ours if champion == agent else earns(champion)
    verdict = Judgement(ours, RULES, theirs)
    assert verdict.promoted == promoted
    assert said in verdict.reason
    assert verdict.report()["promoted"] == promoted


def test_differences_are_paired_and_signed() -> None:
    verdict = Judgement(earns(1.0), RULES, earns(0.5))
    report = verdict.report()
    assert (report["best_heuristic"], report["episodes"]) == ("good", 400)
    assert report["advantage"]["mean"] == pytest.approx(1.0, abs=0.03)
    assert report["advantage"]["high"] - report["advantage"]["low"] < 0.06  # of the returns themselves it is 0.6
    assert verdict.gain is not None
    assert verdict.gain["mean"] == pytest.approx(0.5, abs=0.03)
    assert set(report["heuristics"]) == {"poor", "good"}


def test_a_gap_is_above_zero_for_who_is_behind_whatever_the_sign_of_the_return() -> None:
    assert gap(np.array([-3.0, -1.0]), np.array([-1.0, -1.0])) == pytest.approx(1.0)
    assert gap(np.array([3.0]), np.array([4.0])) == pytest.approx(0.25)
    assert gap(np.array([5.0]), np.array([4.0])) == pytest.approx(-0.25)
