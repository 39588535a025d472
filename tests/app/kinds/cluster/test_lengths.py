import numpy as np
import pytest

from app.kinds.cluster.jobs import Floats
from app.kinds.cluster.lengths import USUAL_SECONDS, Lengths

NAN = np.nan


def jobs(rows: list[tuple[int, float, float]]) -> Floats:
    """Application, data and seconds of each, as ``Arrivals.jobs`` has them."""
    return np.array([(0, application, 1, data, seconds) for application, data, seconds in rows], np.float64)


SCALED = [(0, size, 100.0 * size) for size in (1.0, 2.0, 4.0, 8.0, 16.0) for _ in range(20)]


def test_twice_the_data_takes_as_much_longer_as_the_log_says() -> None:
    known = Lengths(jobs([*SCALED, *((1, size, 500.0) for _, size, _ in SCALED)]), 2)
    ones = np.ones(2, np.int64)
    np.testing.assert_allclose(known.scale(0 * ones, np.array([4.0, 8.0])), [1.0, 2.0], rtol=0.05)
    np.testing.assert_allclose(known.scale(ones, np.array([4.0, 8.0])), [1.0, 1.0], rtol=0.05)


def test_where_the_log_says_nothing_of_data_seconds_grow_with_them() -> None:
    known = Lengths(jobs([(0, 10.0, 600.0)]), 1)
    assert known.scale(np.array([0, 0, -1]), np.array([30.0, NAN, 30.0])).tolist() == pytest.approx([3.0, 1.0, 1.0])
    assert known.usual.tolist() == [600.0, 600.0]


def test_a_job_of_unknown_length_is_told_by_those_that_trained_for_longer() -> None:
    known, ran = Lengths(jobs([(0, NAN, 100.0), (0, NAN, 1_000.0), (1, NAN, 7.0)]), 2), np.array([0.0, 100.0, 5e3])
    assert known.remaining_seconds(np.zeros(3, np.int64), ran).tolist() == [550.0, 900.0, 5e3]
    assert known.remaining_seconds(np.array([1, -1]), np.zeros(2)).tolist() == [7.0, pytest.approx(369.0)]


def test_where_nothing_is_known_at_all_it_begins_with_an_hour() -> None:
    known = Lengths(jobs([(0, NAN, NAN)]), 1)
    assert known.remaining_seconds(np.array([0, -1, 0]), np.array([0.0, 60.0, 9e3])).tolist() == [
        USUAL_SECONDS,
        USUAL_SECONDS,
        9e3,
    ]
