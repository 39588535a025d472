"""Intervals of what few runs say."""

import pytest
from scipy import stats

from app.agents.evidence import interval


@pytest.mark.parametrize("runs", [2, 3, 5, 6, 8, 20, 1_000])
def test_few_runs_have_student_s_interval(runs: int) -> None:
    values = [float(number % 3) for number in range(runs)]
    result, (low, high) = interval(values), stats.t.interval(0.95, runs - 1)
    error = stats.sem(values)
    assert result.low == pytest.approx(result.mean + low * error, rel=1e-3)
    assert result.high == pytest.approx(result.mean + high * error, rel=1e-3)


def test_one_run_says_nothing_of_its_spread() -> None:
    result = interval([0.5])
    assert (result.mean, result.low, result.high) == (0.5, None, None)
