"""Jobs that converge give GPUs back, and turn round once at most."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from app.kinds.cluster import jobs as table
from app.kinds.cluster.lookahead import (
    UNLIMITED,
    Converging,
    Progress,
    Tolerance,
    join,
    keep,
    none,
    update_convergence,
    with_ceilings,
)
from app.kinds.cluster.placement import Situation
from app.kinds.cluster.strategies import equal_share, fifo
from tests.app.kinds.cluster.situations import Planted

TOLERANCE = Tolerance(gain=0.01, doubt=0.5, window_seconds=10.0)


def progress(gain: float, gpus: int, level: float = 1.0, half: float = 0.0, floor: int = 1) -> Progress:
    """Of one job."""
    return Progress(np.array([level]), np.array([gain]), np.array([half]), np.array([gpus]), np.array([floor]))


def test_it_is_halved_window_by_window_down_to_its_floor() -> None:
    state, gpus, visited = none(1), 8, []
    for now in range(0, 60, 5):
        state = update_convergence(state, progress(0.001, gpus, floor=2), float(now), TOLERANCE)
        gpus = int(min(state.ceiling[0], 8))
        visited.append(gpus)
    assert visited == [4, 4, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]


def test_it_is_shrunk_to_what_fits_nodes() -> None:
    fits = np.array([0, 1, 2, 4, 8, 12])
    for gpus, fewer in ((12, 4), (8, 4), (4, 2), (2, 1)):
        observation = progress(0.001, gpus)._replace(sizes=fits)
        assert update_convergence(none(1), observation, 0.0, TOLERANCE).ceiling.tolist() == [fewer]


def test_what_is_in_doubt_is_not_small() -> None:
    assert update_convergence(none(1), progress(0.001, 8, half=0.1), 0.0, TOLERANCE).ceiling[0] == UNLIMITED
    assert update_convergence(none(1), progress(float("nan"), 8), 0.0, TOLERANCE).ceiling[0] == UNLIMITED


def test_it_is_restored_for_good_when_more_is_left_or_it_came_further_than_expected() -> None:
    shrunk = update_convergence(none(1), progress(0.001, 8), 0.0, TOLERANCE)
    for revived in (progress(0.05, 4), progress(0.0, 4, level=1.2)):
        again = update_convergence(shrunk, revived, 5.0, TOLERANCE)
        assert again.ceiling[0] == UNLIMITED
        assert again.restored[0]
        assert update_convergence(again, progress(0.0, 8), 100.0, TOLERANCE).ceiling[0] == UNLIMITED


@given(st.lists(st.tuples(st.floats(-0.1, 0.5), st.floats(0, 0.2), st.floats(0.1, 2)), max_size=40))
def test_no_job_turns_round_more_than_once(reporting: list[tuple[float, float, float]]) -> None:
    state, ceilings = none(1), [UNLIMITED]
    for now, (gain, half, level) in enumerate(reporting):
        gpus = int(min(state.ceiling[0], 64))
        state = update_convergence(state, progress(gain, gpus, level, half), 20.0 * now, TOLERANCE)
        ceilings.append(int(state.ceiling[0]))
        assert state.ceiling[0] >= 1
    ways = [np.sign(after - before) for before, after in itertools.pairwise(ceilings) if after != before]
    assert sum(one != other for one, other in itertools.pairwise(ways)) <= 1


def test_what_is_freed_is_given_on() -> None:
    eight, ones = np.array([8, 8]), np.ones(2)
    jobs = table.arrive(table.none(2), np.zeros(2), np.zeros(2, np.int64), eight, (np.ones(2, np.int64), eight))
    here = Situation(0.0, np.array([4, 4]), jobs, Planted(8, ones, 0 * ones, ones, eight), 30.0)
    before = equal_share(here).gpus
    state = Converging(np.array([2, UNLIMITED]), np.zeros(2), np.zeros(2), np.zeros(2, np.bool_))
    after = with_ceilings(equal_share, state)(here).gpus
    assert_array_equal(before, [4, 4])
    assert_array_equal(after, [2, 6])
    assert with_ceilings(fifo, state)(here).gpus[0] == 2


def test_columns_follow_their_jobs() -> None:
    both = Progress(np.ones(2), np.array([0.0, 1.0]), np.zeros(2), np.array([8, 8]), np.ones(2, np.int64))
    state = update_convergence(none(2), both, 0.0, TOLERANCE)
    assert_array_equal(state.ceiling, [4, UNLIMITED])
    assert_array_equal(join(keep(state, np.array([True, False])), 1).ceiling, [4, UNLIMITED])
