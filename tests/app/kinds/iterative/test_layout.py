import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.contract.inputs import InvalidInput
from app.kinds.iterative.layout import Layout
from app.kinds.iterative.moves import action_towards, step
from tests.planted import planted_spec

TWO = planted_spec(
    resources=[
        {"name": "gpus", "minimum": 1, "maximum": 8, "max_steps": 2},
        {"name": "cpus", "minimum": 2, "maximum": 10, "step": 2, "max_steps": 1},
    ],
    features=[{"name": "batch", "minimum": 1, "maximum": 512}],
)


def test_grid_actions_and_names_fit_together() -> None:
    layout = Layout(TWO)
    assert layout.levels == (8, 5)
    assert layout.allocations.shape == (40, 2)
    assert layout.deltas.shape == (15, 2)
    assert layout.deltas[layout.noop].tolist() == [0, 0]
    assert layout.allocation_dict(np.array([3, 2])) == {"gpus": 4, "cpus": 6}
    assert layout.allocations[layout.index(np.array([3, 2]))].tolist() == [4, 6]


@pytest.mark.parametrize(
    ("allocation", "metrics", "features", "pointer"),
    [
        ({"gpus": 9, "cpus": 2}, {"iteration_seconds": 1}, {"batch": 1}, "/allocation/gpus"),
        ({"gpus": 1, "cpus": 3}, {"iteration_seconds": 1}, {"batch": 1}, "/allocation/cpus"),
        ({"gpus": 1}, {"iteration_seconds": 1}, {"batch": 1}, "/allocation/cpus"),
        ({"gpus": 1, "cpus": 2, "tpus": 1}, {"iteration_seconds": 1}, {"batch": 1}, "/allocation/tpus"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": -1}, {"batch": 1}, "/metrics/iteration_seconds"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": math.nan}, {"batch": 1}, "/metrics/iteration_seconds"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": True}, {"batch": 1}, "/metrics/iteration_seconds"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": 1, "loss": 1}, {"batch": 1}, "/metrics/loss"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": 1}, {"batch": math.inf}, "/features/batch"),
        ({"gpus": 1, "cpus": 2}, {"iteration_seconds": 1}, {"batch": 513}, "/features/batch"),
    ],
)
def test_bad_reports_name_the_field(
    allocation: dict[str, float], metrics: dict[str, float], features: dict[str, float], pointer: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        Layout(TWO).encode_report(allocation, metrics, features)
    assert [issue.pointer for issue in caught.value.errors] == [pointer]


@given(st.tuples(st.integers(0, 7), st.integers(0, 4)), st.integers(0, 14))
def test_a_legal_action_moves_exactly_and_an_illegal_one_never_leaves_the_bounds(
    start: tuple[int, int], action: int
) -> None:
    layout = Layout(TWO)
    levels = np.array([start])
    after = step(layout, levels, np.array([action]))
    assert (after >= 0).all()
    assert (after < np.array(layout.levels)).all()
    if layout.legal(levels)[action, 0]:
        assert (after - levels == layout.deltas[action]).all()


@given(st.tuples(st.integers(0, 7), st.integers(0, 4)), st.tuples(st.integers(0, 7), st.integers(0, 4)))
def test_moving_towards_a_goal_gets_there(start: tuple[int, int], goal: tuple[int, int]) -> None:
    layout = Layout(TWO)
    levels, aim = np.array([start]), np.array([goal])
    for _ in range(8):
        action = action_towards(layout, levels, aim)
        assert layout.legal(levels)[action[0], 0]
        levels = step(layout, levels, action)
    assert (levels == aim).all()
