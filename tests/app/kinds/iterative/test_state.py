from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.iterative.layout import Layout
from app.kinds.iterative.model import Point
from app.kinds.iterative.projection import LARGEST_SUFFIX
from app.kinds.iterative.projector import Projector
from app.kinds.iterative.state import State, advance, begin, pack, unpack
from tests.planted import planted_spec, planted_table

SPEC = planted_spec()
LAYOUT = Layout(SPEC)


def report(projector: Projector, seconds: list[float], levels: list[int]) -> State:
    state = begin(projector, np.array([levels[:1]]))
    for duration, level in zip(seconds, levels, strict=True):
        state = advance(projector, state, np.array([[level]]), np.array([[duration]]), np.zeros((1, 0)))
    return state


def test_the_posterior_is_the_conjugate_normal() -> None:
    table = planted_table(SPEC, effect=0.2, noise=0.1)
    projector = Projector(LAYOUT, table)
    expected = float(np.exp(table.log_mean[0, 5, 0, 0]))
    ratios = np.array([0.11, 0.02, 0.15, -0.03])
    state = report(projector, list(expected * np.exp(ratios)), [5] * 4)
    precision = 1 / 0.2**2 + 4 / 0.1**2
    assert state.effect[0, 0] == pytest.approx(ratios.sum() / 0.1**2 / precision, rel=1e-5)
    assert state.variance[0, 0] == pytest.approx(1 / precision, rel=1e-6)


def test_a_change_is_not_taken_for_a_slow_run() -> None:
    table = planted_table(SPEC)
    projector = Projector(LAYOUT, table)
    first, second = (float(np.exp(table.log_mean[0, a, 0, 0])) for a in (5, 7))
    state = report(projector, [first, second + 2.0], [5, 7])
    assert state.effect[0, 0] == pytest.approx(0, abs=1e-6)


def test_a_disturbance_is_followed_at_once() -> None:
    table = planted_table(SPEC, effect=0.05, noise=0.02)
    projector = Projector(LAYOUT, table)
    expected = float(np.exp(table.log_mean[0, 5, 0, 0]))
    state = report(projector, [expected] * 10 + [2 * expected] * 2, [5] * 12)
    assert state.effect[0, 0] == pytest.approx(np.log(2), rel=0.05)


def test_a_slow_drift_that_no_sample_shows_is_followed() -> None:
    """Three percent an iteration, a third of the noise: under a constant effect the error grows to a multiple of it."""
    table = planted_table(SPEC, effect=0.15, noise=0.1, drift=0.0)
    projector = Projector(LAYOUT, table)
    expected = float(np.exp(table.log_mean[0, 5, 0, 0]))
    noise = 0.1 * np.random.default_rng(4).standard_normal((200, 25))
    drift = 0.03 * np.arange(25)
    behind = [
        drift[-1] - report(projector, list(expected * np.exp(drift + one)), [5] * 25).effect[0, 0] for one in noise
    ]
    assert np.mean(behind) < 0.2  # half of 0.36, which a constant effect lags behind


def test_noise_is_hardly_taken_for_drift() -> None:
    table = planted_table(SPEC, effect=0.15, noise=0.1, drift=0.0)
    projector = Projector(LAYOUT, table)
    expected = float(np.exp(table.log_mean[0, 5, 0, 0]))
    noise = 0.1 * np.random.default_rng(4).standard_normal((200, 25))
    effects = [report(projector, list(expected * np.exp(one)), [5] * 25).effect[0, 0] for one in noise]
    assert np.std(effects) < 2 * 0.1 / np.sqrt(25)  # twice that of the mean, at most


@given(
    st.lists(st.tuples(st.integers(0, 32), st.floats(0.01, 1e5)), min_size=1, max_size=8),
    st.floats(1, 1e6),
)
def test_packing_loses_nothing(reports: list[tuple[int, float]], target: float) -> None:
    projector = Projector(LAYOUT, planted_table(SPEC))
    state = begin(projector, np.array([[4]]), targets=[[target]])
    for level, seconds in reports:
        state = advance(projector, state, np.array([[level]]), np.array([[seconds]]), np.zeros((1, 0)))
    again = unpack(LAYOUT, pack(state))
    for before, after in zip(state, again, strict=True):
        np.testing.assert_array_equal(before, after)


def test_remaining_sums_agree_with_a_loop_also_when_rows_are_spaced(monkeypatch: pytest.MonkeyPatch) -> None:
    table = planted_table(SPEC)
    bins = np.arange(30) % 3
    shape = (1, 33, 1, 3)
    table = replace(
        table,
        log_mean=np.random.default_rng(1).normal(size=shape).astype(np.float32),
        iteration_bin=bins.astype(np.int32),
    )
    exact = Projector(LAYOUT, table)
    expected = [np.exp(table.log_mean[0, 7, 0, bins[i]] + exact.noise_variance[0] / 2) for i in range(30)]
    for k in range(30):
        got = exact.remaining(0, np.array([[7]]), Point(np.array([[0]])), np.array([k]))
        assert got[0, 0] == pytest.approx(sum(expected[k:]), rel=1e-5)
    monkeypatch.setattr("app.kinds.iterative.projection.LARGEST_SUFFIX", LARGEST_SUFFIX // 6000)
    spaced = Projector(LAYOUT, table)
    assert spaced.stride > 1
    for k in range(0, 31, spaced.stride):
        got = spaced.remaining(0, np.array([[7]]), Point(np.array([[0]])), np.array([k]))
        assert got[0, 0] == pytest.approx(sum(expected[k:]), rel=1e-5)
