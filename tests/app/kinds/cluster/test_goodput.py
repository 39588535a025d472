from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.cluster.placement import Situation, pack, place
from app.kinds.cluster.strategies import FLOOR, fitting, goodput, least, speedups
from tests.app.kinds.cluster.situations import situations
from tests.pollux.goodput import JobStatistics, best, goodput_at

PARAMETERS = np.array([[0.121, 0.00568, 0.0236, 0.00634, 0.0118, 0.00317, 1.14]])
ONE = np.ones(1, np.int64)
KNOWN = JobStatistics(PARAMETERS, np.array([0.00136]), np.array([0.000502]), 128 * ONE, 1024 * ONE, 32 * ONE, 512 * ONE)


@pytest.mark.parametrize(("nodes", "gpus", "expected"), [(2, 8, 305.717), (1, 4, 299.145)])
def test_goodput_is_as_published(nodes: int, gpus: int, expected: float) -> None:
    shape = (1, 1, 1)
    values = goodput_at(KNOWN, np.full(shape, nodes), np.full(shape, gpus), np.full(shape, 64.0), np.zeros(shape))
    assert values.item() == pytest.approx(expected, rel=2e-6)


def test_the_best_batch_is_legal_and_no_tried_one_is_better() -> None:
    gpus = np.array([1, 2, 4, 8, 16, 64])
    nodes = np.maximum(-(-gpus // 4), 1)
    result = best(KNOWN, nodes, gpus)
    legal = gpus * 32 <= 1024
    assert (result.goodput[0] > 0).tolist() == legal.tolist()
    assert ((result.atomic[0, legal] >= 32) & (result.atomic[0, legal] <= 512)).all()
    for at in np.flatnonzero(legal):
        for atomic in range(32, 513, 16):
            if 128 <= atomic * gpus[at] <= 1024 and gpus[at] > 1:
                shape = (1, 1, 1)
                where = np.full(shape, nodes[at]), np.full(shape, gpus[at])
                value = goodput_at(KNOWN, *where, np.full(shape, float(atomic)), np.zeros(shape)).item()
                assert value <= result.goodput[0, at] * 1.02  # between the sizes that are tried


def test_a_lone_gpu_accumulates_once_it_has_more_than_the_initial_batch() -> None:
    steep = KNOWN._replace(variance=np.array([1.0]), squared=np.array([1e-6]))
    result = best(steep, np.array([1]), np.array([1]))
    assert result.accumulated.item() >= 1


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(0, 9), st.integers(0, 2**32 - 1))
def test_no_other_numbers_cost_less(jobs: int, total: int, seed: int) -> None:
    sizes = np.array([size for size in (0, 1, 2, 4, 8) if size <= total])
    cost = np.random.default_rng(seed).uniform(0, 1, (jobs, len(sizes)))
    chosen = least(cost, sizes, total)
    assert sizes[chosen].sum() <= total
    options = product(range(len(sizes)), repeat=jobs)
    every = [cost[range(jobs), list(one)].sum() for one in options if sizes[list(one)].sum() <= total]
    assert cost[range(jobs), chosen].sum() == pytest.approx(min(every))


@settings(max_examples=40)
@given(situations(most=5))
def test_the_objective_is_maximised(situation: Situation) -> None:
    sizes = fitting(situation.capacity)
    cost = 1 / (speedups(situation, sizes) + FLOOR)
    gpus = goodput(situation).gpus
    assert int(gpus.sum()) <= situation.gpus
    result = cost[range(len(gpus)), np.searchsorted(sizes, gpus)].sum()
    rows = [range(len(sizes))] * len(gpus)
    for one in np.random.default_rng(0).permutation(np.array([*product(*rows)][:20_000]))[:500]:
        if sizes[one].sum() <= situation.gpus:
            assert result <= cost[range(len(gpus)), one].sum() + 1e-9


@settings(max_examples=60)
@given(
    st.integers(1, 6), st.lists(st.sampled_from([1, 2, 4, 8, 12]), min_size=1, max_size=12), st.integers(0, 2**32 - 1)
)
def test_what_fits_in_number_is_packed(nodes: int, wanted: list[int], seed: int) -> None:
    capacity, numbers = np.full(nodes, 4), np.random.default_rng(seed)
    gpus = np.array(wanted)
    gpus[gpus.cumsum() > 4 * nodes] = 0
    fresh = pack(capacity, np.zeros((len(gpus), nodes), np.int64), gpus)
    assert fresh is not None
    leave = numbers.random(len(gpus)) < 0.5
    again = np.where(leave, 0, gpus)
    selection = np.where(leave[:, None], 0, fresh)
    more = np.where(leave, numbers.choice([0, 1, 2, 4], len(gpus)), 0)
    more[(more + again).cumsum() > 4 * nodes] = 0
    if int((more + again).sum()) > 4 * nodes:
        more[:] = 0
    current = pack(capacity, selection, more)
    assert current is not None
    assert (current.sum(axis=0) <= capacity).all()
    np.testing.assert_array_equal(current.sum(axis=1), more + again)
    assert ((current > 0).sum(axis=1) == -(-(more + again) // 4)).all()


@given(situations())
def test_goodput_keeps_to_the_nodes(situation: Situation) -> None:
    wanted = goodput(situation)
    placement = place(situation, wanted)
    assert (placement.sum(axis=0) <= situation.capacity).all()
    np.testing.assert_array_equal(placement.sum(axis=1), wanted.gpus)
    runs = wanted.gpus > 0
    assert (wanted.gpus[runs] >= situation.jobs.minimum[runs]).all()
    assert (wanted.gpus <= situation.jobs.maximum).all()
