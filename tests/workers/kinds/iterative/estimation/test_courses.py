"""Courses of features: which vary, and what fills an iteration that an execution lacks."""

from typing import Any

import numpy as np
import pytest

from app.kinds.iterative.layout import Layout
from tests.planted import planted_spec
from workers.estimators.base import Floats
from workers.kinds.iterative.grid import Executions, Flat, courses

ITERATIONS = 30
SPEC = planted_spec(
    features=[{"name": "batch", "minimum": 1, "maximum": 512}, {"name": "rows", "minimum": 0, "maximum": 99}],
    iterations=ITERATIONS,
)


def flat(*runs: Floats) -> Flat:
    """Executions whose rows are (iteration, batch, rows)."""
    items = [
        (f"run-{k}", np.column_stack([run[:, 0], np.full((len(run), 2), (8.0, 10.0)), run[:, 1:]]))
        for k, run in enumerate(runs)
    ]
    return Executions(tuple(items)).flat(Layout(SPEC))


def run(stages: list[int], batch: Any, rows: float) -> Floats:
    return np.column_stack([np.array(stages, float), np.broadcast_to(batch, len(stages)), np.full(len(stages), rows)])


def drawn(flat: Flat, iterations: int = ITERATIONS) -> Floats:
    result = courses(flat, iterations, np.random.default_rng(0))
    assert result is not None
    return result.astype(float)


def test_whole_executions_are_their_own_courses_and_what_none_changes_has_none() -> None:
    every = list(range(ITERATIONS))
    batches = [64.0 + np.arange(ITERATIONS), 128.0 + np.arange(ITERATIONS)]
    result = drawn(flat(*(run(every, batch, 10.0 * k) for k, batch in enumerate(batches))))
    assert sorted(result[:, 0, 0]) == [64, 128]
    assert np.isnan(result[:, :, 1]).all()
    np.testing.assert_array_equal(result[result[:, 0, 0].argmin(), :, 0], batches[0])


def test_where_no_execution_changes_any_there_is_no_course() -> None:
    values = flat(*(run([0, 1, 2], float(batch), 5.0) for batch in (32, 64, 128)))
    assert courses(values, ITERATIONS, np.random.default_rng(0)) is None


def test_single_rows_tell_of_no_course_but_of_a_distribution() -> None:
    inputs = flat(*(run([0], float(batch), 5.0) for batch in (32, 64, 128)))
    result = drawn(inputs)
    assert np.isnan(result[:, :, 1]).all()
    values, counts = np.unique(result[:, :, 0], return_counts=True)
    assert values.tolist() == [32, 64, 128]
    assert counts / counts.sum() == pytest.approx([1 / 3] * 3, abs=4 * np.sqrt(2 / 9 / result[:, :, 0].size))


def test_an_iteration_that_an_execution_lacks_is_anothers_there_else_any() -> None:
    long, short = run(list(range(20)), 100.0 + np.arange(20), 0.0), run([0, 1], np.array([7.0, 8.0]), 0.0)
    result = drawn(flat(long, short))[:, :, 0]
    assert {7.0, 100.0} == set(result[:, 0])
    np.testing.assert_array_equal(result[:, 2:20], np.tile(102.0 + np.arange(18), (len(result), 1)))
    beyond = set(result[:, 20:].ravel())
    assert beyond <= {*long[:, 1], *short[:, 1]}
    assert len(beyond) > 10


def test_long_runs_have_courses_of_bounded_length() -> None:
    result = drawn(flat(run([0, 50_000, 99_999], np.array([1.0, 2.0, 3.0]), 0.0)), 100_000)
    assert result.shape == (32, 1024, 2)
    assert set(result[:, 0, 0]) == {1.0}
    assert set(result[:, 512, 0]) == {2.0}
    assert set(result[:, -1, 0]) == {3.0}
