"""Figures of a schedule, against what is worked out by hand."""

import numpy as np
import pytest

from app.kinds.workflow.queue import nodes_of, pool
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import Trace, independent_jobs
from workers.kinds.workflow.simulator.simulate import Rentals, Schedule, figures, list_rentals, slowdowns


def two() -> Trace:
    """Two jobs of 5 and 100 seconds, the second submitted at 10."""
    return independent_jobs(
        np.array([0.0, 10.0]), np.array([5.0, 100.0]), np.full(2, np.nan), np.array([2, 4]), np.array([0, 0])
    )


def played(trace: Trace, start: list[float], node: list[int]) -> Schedule:
    begun = np.array(start)
    return Schedule(begun, begun + trace.runtime, np.array(node))


def test_a_pools_figures() -> None:
    trace = two()
    result = figures(trace, pool(4), played(trace, [15.0, 20.0], [0, 0]))
    assert result.slowdown == pytest.approx((2.0 + 1.1) / 2)
    assert result.wait == pytest.approx((15 + 10) / 2)
    assert result.makespan == 120
    assert result.utilisation == pytest.approx((10 + 400) / (4 * 120))
    assert (result.misses, result.cost) == (0, 0)


def test_short_jobs_count_as_ten_seconds() -> None:
    trace = two()
    assert list(slowdowns(trace, played(trace, [0.0, 10.0], [0, 0]))) == [1.0, 1.0]
    assert slowdowns(trace, played(trace, [10.0, 10.0], [0, 0]))[0] == 1.5


def test_rented_nodes_are_billed_from_their_order_in_whole_multiples() -> None:
    node_type = NodeType(name="kept", processors=4, price_per_hour=3600, minimum=1, maximum=1)
    more = NodeType(
        name="more", processors=4, price_per_hour=7200, billing_seconds=60, startup_seconds=8, minimum=0, maximum=2
    )
    nodes = nodes_of((node_type, more))
    trace = two()
    schedule = played(trace, [8.0, 10.0], [1, 0])
    assert list(list_rentals(trace, nodes, schedule).node) == [0, 1]  # the second rentable node was never used
    assert figures(trace, nodes, schedule).cost == pytest.approx(110 * 1 + 60 * 2)
    twice = schedule._replace(rentals=Rentals(np.array([1, 1]), np.array([0.0, 50.0]), np.array([13.0, 110.5])))
    assert figures(trace, nodes, twice).cost == pytest.approx(110 * 1 + (60 + 120) * 2)
    assert figures(trace, nodes, twice).utilisation == pytest.approx(410 / (4 * (110 + 13 + 60.5)))


def test_a_child_waits_from_its_parents_end() -> None:
    trace = two()._replace(parent_start=np.array([0, 0, 1]), parents=np.array([0]), data=np.array([0.0]))
    result = figures(trace, pool(4), played(trace, [15.0, 30.0], [0, 0]))
    assert result.wait == pytest.approx((15 + 10) / 2)


def test_deadlines_are_counted_among_those_that_have_one() -> None:
    trace = two()._replace(deadline=np.array([np.nan, 119.0]))
    assert figures(trace, pool(4), played(trace, [15.0, 20.0], [0, 0])).misses == 1


def test_a_schedule_that_is_not_whole_has_no_figures() -> None:
    trace = two()
    schedule = Schedule(np.array([0.0, np.nan]), np.array([5.0, np.nan]), np.array([0, -1]))
    with pytest.raises(ValueError, match="task 1 has not ended"):
        figures(trace, pool(4), schedule)
