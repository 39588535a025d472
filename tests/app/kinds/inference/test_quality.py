"""Response quality: full, then falling, then nothing; and fairness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.inference.quality import QualityTable, jain, slope
from app.kinds.inference.spec import InferenceSpec


def table(shape: str = "linear") -> QualityTable:
    return QualityTable(
        InferenceSpec.model_validate(
            {
                "name": "vision",
                "kind": "inference",
                "variants": [{"name": "small", "accuracy": 0.6}, {"name": "large", "accuracy": 0.8}],
                "servers": [{"name": "cpu", "maximum": 1}],
                "users": [
                    {"name": "ann", "weight": 3, "quality": {"full_until": 1, "zero_at": 3, "shape": shape}},
                    {"name": "bob", "weight": 1, "quality": {"full_until": 0, "zero_at": 1, "shape": shape}},
                ],
            }
        )
    )


def test_linear_quality_is_that_of_the_definition() -> None:
    assert table().quality(0, 1, [0, 1, 2, 3, 9]).tolist() == [1, 1, 0.5, 0, 0]
    assert table().quality([0, 1], 0, [2, 0.5]) == pytest.approx([0.375, 0.375])
    assert table().weight.tolist() == [1.5, 0.5]


@pytest.mark.parametrize("shape", ["linear", "exponential"])
@given(delays=st.lists(st.floats(0, 10), min_size=2, max_size=20), user=st.integers(0, 1))
def test_quality_never_rises_with_delay_nor_falls_with_accuracy(shape: str, delays: list[float], user: int) -> None:
    qualities = table(shape).quality(user, [[0], [1]], np.sort(delays))
    assert (np.diff(qualities, axis=1) <= 0).all()
    assert (np.diff(qualities, axis=0) >= 0).all()
    assert ((qualities >= 0) & (qualities <= 1)).all()


def test_an_exponential_begins_full_ends_at_nothing_and_is_below_the_line() -> None:
    exponential = table("exponential").by_delay(0, [1, 2, 3])
    assert exponential[[0, 2]].tolist() == [1, 0]
    assert 0 < exponential[1] < 0.5


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_fairness_lies_between_one_user_alone_and_all_alike(quality: list[float]) -> None:
    assert 1 / len(quality) - 1e-9 <= jain(quality) <= 1 + 1e-9


def test_fairness_of_equals_is_one() -> None:
    assert jain([0.4, 0.4, 0.4]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([0, 0]) == 1


@given(st.lists(st.floats(0.01, 1), min_size=1, max_size=9))
def test_the_slope_of_fairness_is_its_derivative(quality: list[float]) -> None:
    x, h = np.array(quality), 1e-6
    differences = [(jain(x + h * unit) - jain(x - h * unit)) / (2 * h) for unit in np.eye(len(x))]
    np.testing.assert_allclose(slope(x), differences, atol=1e-4)
    assert np.isfinite(slope([0.0] * len(x))).all()
