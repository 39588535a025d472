import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kinds.cluster.jobs import Floats, Integers
from app.kinds.cluster.placement import Neighbours, Situation, beside_others, place, slowdowns
from app.kinds.cluster.strategies import fifo
from tests.app.kinds.cluster.situations import situations

BAD = Neighbours(np.array([0, 1, 0, 1]), np.log(np.array([[1.0, 2.0], [1.5, 1.0]])))


def total(neighbours: Neighbours, allocation: Integers) -> float:
    """Sum of the logs of all pairs on all nodes."""
    total = 0.0
    for node in allocation.T:
        there = np.flatnonzero(node)
        kinds = neighbours.kind[there]
        pairs = neighbours.log_slowdown[np.ix_(kinds, kinds)]
        total += float(pairs.sum() - np.trace(pairs))
    return total


def test_each_neighbour_counts_once_and_several_multiply() -> None:
    allocation = np.array([[2, 0], [2, 2], [0, 1], [0, 1]])
    np.testing.assert_allclose(slowdowns(BAD, allocation), [2.0, 1.5 * 1.5, 2.0 * 2.0, 1.5])


def test_those_who_come_stand_beside_whom_they_suffer_least() -> None:
    capacity, before = np.array([4, 4]), np.array([[2, 0], [0, 2], [0, 0], [0, 0]])
    crossed = np.array([[2, 0], [0, 2], [0, 2], [2, 0]])
    result = beside_others(BAD, capacity, crossed, before)
    assert result.tolist() == [[2, 0], [0, 2], [2, 0], [0, 2]]
    assert slowdowns(BAD, result).tolist() == [1.0] * 4


def test_who_is_there_already_is_not_moved_for_it() -> None:
    allocation = np.array([[2, 0], [2, 0]])
    two = Neighbours(np.array([0, 1]), BAD.log_slowdown)
    assert beside_others(two, np.array([4, 4]), allocation, allocation).tolist() == allocation.tolist()
    assert beside_others(two, np.array([4, 4]), allocation, allocation * [[1], [0]]).tolist() == [[2, 0], [0, 2]]


@given(situations(), st.integers(0, 2**32 - 1))
def test_no_node_gives_more_nobody_gets_less_and_nothing_becomes_worse(situation: Situation, seed: int) -> None:
    numbers, count = np.random.default_rng(seed), len(situation.jobs.queue)
    slow: Floats = numbers.uniform(0, 1, (3, 3))
    neighbours = Neighbours(numbers.integers(0, 3, count), slow)
    plain = place(situation, fifo(situation))
    placement = place(situation._replace(neighbours=neighbours), fifo(situation))
    assert (placement >= 0).all()
    assert (placement.sum(axis=0) <= situation.capacity).all()
    np.testing.assert_array_equal(placement.sum(axis=1), plain.sum(axis=1))
    same = (plain == situation.jobs.allocation).all(axis=1)
    np.testing.assert_array_equal(placement[same], situation.jobs.allocation[same])
    assert total(neighbours, placement) <= total(neighbours, plain) + 1e-9


def test_nothing_is_lost_where_nobody_disturbs_anybody() -> None:
    none = Neighbours(np.array([0, 1]), np.zeros((2, 2)))
    allocation = np.array([[2, 0], [2, 0]])
    assert beside_others(none, np.array([4, 4]), allocation, np.zeros_like(allocation)).tolist() == allocation.tolist()
    assert slowdowns(none, allocation) == pytest.approx([1.0, 1.0])
