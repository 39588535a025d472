"""Ranks against published tables."""

import numpy as np
import pytest

from app.kinds.workflow.scheduling.placement import critical, downward, first_ready, graph, levels, optimistic, upward
from app.kinds.workflow.scheduling.situation import following
from tests.app.kinds.workflow.graphs import ARABNEJAD, TOPCUOGLU


def test_ranks_of_the_classic_graph_are_the_published_ones() -> None:
    average = TOPCUOGLU.cost.mean(axis=1)
    up = upward(TOPCUOGLU.graph, average, TOPCUOGLU.data)
    down = downward(TOPCUOGLU.graph, average, TOPCUOGLU.data)
    assert up == pytest.approx([108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667], abs=1e-3)
    assert down == pytest.approx([0, 31, 25, 22, 24, 27, 62.333, 66.667, 63.667, 93.333], abs=1e-3)
    order = list(first_ready(TOPCUOGLU.graph, up) + 1)
    assert order in ([1, 3, 4, 2, 5, 6, 9, 7, 8, 10], [1, 4, 3, 2, 5, 6, 9, 7, 8, 10])  # 3 and 4 tie
    assert list(np.flatnonzero(critical(TOPCUOGLU.graph, up + down)) + 1) == [1, 2, 9, 10]


@pytest.mark.parametrize("over_lists", [False, True])
def test_the_optimistic_cost_table_is_the_published_one(over_lists: bool) -> None:
    table = optimistic(ARABNEJAD.graph, ARABNEJAD.cost, ARABNEJAD.data)
    if over_lists:
        table = np.array(following(ARABNEJAD.graph, ARABNEJAD.cost.T.tolist(), ARABNEJAD.data.tolist())).T
    assert table[:4].tolist() == [[64, 68, 86], [42, 39, 42], [27, 41, 43], [42, 39, 50]]
    assert table[4:].tolist() == [[28, 37, 28], [42, 39, 44], [13, 16, 22], [13, 16, 33], [13, 16, 20], [0, 0, 0]]


def test_the_order_ends_before_a_circle_and_a_graph_with_one_is_refused() -> None:
    start, parents = np.array([0, 0, 2, 3]), np.array([0, 2, 1])  # 0 → 1 ⇄ 2
    with pytest.raises(ValueError, match="2 tasks depend on each other in a circle"):
        graph(start, parents)


def test_levels_count_edges() -> None:
    assert levels(TOPCUOGLU.graph).tolist() == [0, 1, 1, 1, 1, 1, 2, 2, 2, 3]
