"""Planted frontiers: who is ahead at equal cost, and at equal quality, is known."""

import numpy as np
import pytest

from benchmarks.inference_frontier import Point, compared, mixed, undominated

NOISE = np.random.default_rng(0).normal(0, 0.01, 32)


def point(quality: float, cost: float) -> Point:
    return Point("one", quality + NOISE, cost + NOISE)


def test_what_costs_more_for_less_is_left_out() -> None:
    points = [point(0.9, 2.0), point(0.8, 1.0), point(0.85, 2.5), point(0.95, 3.0)]
    assert [round(float(one.cost.mean() - NOISE.mean()), 3) for one in undominated(points)] == [1.0, 2.0, 3.0]


def test_neighbours_are_mixed_to_the_wanted_cost_and_not_beyond() -> None:
    points = [point(0.8, 1.0), point(0.9, 2.0)]
    result = mixed(points, 1.25 + float(NOISE.mean()), "cost")
    assert result is not None
    assert result.quality.mean() == pytest.approx(0.825 + NOISE.mean())
    assert mixed(points, 3.0, "cost") is None


@pytest.mark.parametrize("gain", [0.05, -0.05])
def test_a_planted_difference_is_found_at_equal_cost_and_at_equal_quality(gain: float) -> None:
    own = [point(0.7, 1.0), point(0.9, 3.0)]  # a tenth of quality for each unit of cost
    cost, quality = compared("own", own, {"other": [point(0.8 - gain, 2.0)]})
    assert cost["value"] == pytest.approx(gain)
    assert quality["value"] == pytest.approx(10 * gain)
    assert ("met" in cost["goal"], "missed" in cost["goal"]) == (gain > 0, gain < 0)
