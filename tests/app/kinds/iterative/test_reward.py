"""What a run is paid for, against the definitions, by hand."""

from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.observation import miss, preferences_of, reference_cost, reward, terms
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin
from tests.planted import planted_spec, planted_table

SPEC = planted_spec(
    iterations=4,
    metrics=[
        {"name": "iteration_seconds", "target": 40.0, "scope": "run", "weight": 3.0},
        {"name": "loss", "target": 2.0, "weight": 0.5},
        {"name": "speed", "target": 4.0, "goal": "at_least", "weight": 2.0},
        {"name": "untold"},
    ],
)
LAYOUT = Layout(SPEC)
PROJECTOR = Projector(LAYOUT, planted_table(SPEC))


def went(*reports: tuple[int, list[float]]) -> tuple[State, State]:
    """The states before and after the last of the reports (level and metrics each)."""
    before = after = begin(PROJECTOR, np.array([[reports[0][0]]]))
    for level, metrics in reports:
        before, after = after, advance(PROJECTOR, after, np.array([[level]]), np.array([metrics]), np.zeros((1, 0)))
    return before, after


@pytest.mark.parametrize(
    ("goal", "ratio", "expected"),
    [
        ("at_most", 1.5, 0.5),
        ("at_most", 0.5, 0.0),
        ("at_least", 0.5, 0.5),
        ("at_least", 1.5, 0.0),
        ("track", 0.5, 0.5),
        ("track", 1.5, 0.5),
    ],
)
def test_a_miss_is_relative_and_counts_on_the_goals_side(goal: Any, ratio: float, expected: float) -> None:
    assert miss(goal, np.array([ratio])) == pytest.approx(expected)


def test_an_iterations_misses_are_weighed_and_averaged_and_a_runs_counts_once_at_its_end() -> None:
    metrics = [12.0, 3.0, 1.0, 9.0]
    an_iteration = (0.5 * (3 / 2 - 1) + 2.0 * (1 - 1 / 4)) / 4
    before, after = went((4, metrics))
    assert terms(PROJECTOR, before, after)[0, 0] == pytest.approx(an_iteration, rel=1e-6)
    before, after = went(*[(4, metrics)] * 4)
    at_the_end = 3.0 * (48 / 40 - 1)
    assert terms(PROJECTOR, before, after)[0, 0] == pytest.approx(an_iteration + at_the_end, rel=1e-5)
    before, after = went(*[(4, [9.0, 1.0, 5.0, 9.0])] * 4)
    assert terms(PROJECTOR, before, after)[0, 0] == 0


def test_cost_is_a_share_of_the_whole_run_at_the_largest_allocation() -> None:
    before, after = went((4, [10.0, 1.0, 5.0, 9.0]), (6, [10.0, 1.0, 5.0, 9.0]))
    result = terms(PROJECTOR, before, after)
    money = 10.0 * 10 * LAYOUT.prices[0] / 3600  # ten units for ten seconds
    assert result[0, 1] == pytest.approx(money / reference_cost(PROJECTOR, before)[0], rel=1e-5)
    np.testing.assert_array_equal(terms(PROJECTOR, before, after, preferences_of(PROJECTOR, before)), result)


def test_only_steps_between_iterations_are_changes() -> None:
    metrics = [10.0, 1.0, 5.0, 9.0]
    first = went((6, metrics))
    before = first[0]._replace(levels=np.array([[4]], np.int16))
    assert terms(PROJECTOR, before, first[1])[0, 2] == 0
    up, down = went((4, metrics), (7, metrics)), went((7, metrics), (4, metrics))
    one = went((4, metrics), (5, metrics))
    moved = [terms(PROJECTOR, *pair)[0, 2] for pair in (up, down, one)]
    assert moved[0] == moved[1] == pytest.approx(3 * moved[2])
    assert moved[2] == pytest.approx(1 / (4 * 4))  # four steps an iteration could be taken


def test_the_reward_is_what_the_terms_cost() -> None:
    weights, values = np.array([[1.0, 2.0, 4.0]]), np.array([[0.5, 0.25, 0.125]])
    assert reward(weights, values).tolist() == [-1.5]
