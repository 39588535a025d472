"""Which differences count: the margin of practical equivalence."""

import pytest

from workers.evaluation.statistics import Equivalence


def interval(low: float, high: float) -> dict[str, float]:
    return {"mean": (low + high) / 2, "low": low, "high": high}


@pytest.mark.parametrize("reference", [-2.0, 2.0])
@pytest.mark.parametrize(
    ("low", "high", "as_good", "better", "worse"),
    [
        (0.03, 0.05, True, True, False),
        (0.01, 0.05, True, False, False),  # better than nothing, but perhaps within the margin of .02
        (0.00004, 0.00012, True, False, False),
        (0.0, 0.05, True, False, False),
        (-0.0001, -0.00001, True, False, False),
        (-0.019, 0.001, True, False, False),
        (-0.03, 0.05, False, False, False),
        (-0.06, -0.03, False, False, True),
    ],
)
def test_a_gain_of_nothing_is_none_and_neither_is_a_loss(
    reference: float, low: float, high: float, as_good: bool, better: bool, worse: bool
) -> None:
    margin = Equivalence(0.01, reference)
    assert margin.margin == pytest.approx(0.02)
    assert (margin.as_good(interval(low, high)), margin.better(interval(low, high))) == (as_good, better)
    assert margin.worse(interval(low, high)) == worse


def test_without_a_margin_a_gain_still_has_to_be_one() -> None:
    exact = Equivalence(0.0, -1.0)
    assert exact.as_good(interval(0.0, 0.0))
    assert not exact.better(interval(0.0, 0.1))
    assert not exact.better(interval(0.0, 0.0))
    assert exact.better(interval(0.001, 0.1))
    assert not exact.as_good(interval(-0.001, 0.1))


def test_it_is_told_in_returns_and_as_a_share() -> None:
    text = "tolerance 0.0025, 1.0 % of the best heuristic's return"
    assert str(Equivalence(0.01, -0.25)) == text
