"""What an attempt of a search changes and takes back, and that what it times is what it plans."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.workflow.scheduling.placement import Indices, planned
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, length, money
from tests.app.kinds.workflow.graphs import TOPCUOGLU, Edges, layered, problem_of
from tests.app.kinds.workflow.scheduling.test_planning import check_plan, drawn_problem
from workers.kinds.workflow.simulator.annealing import (
    DRAWS,
    SearchObjective,
    anneal_course,
    attempt,
    compute_times,
    course,
    critical_chain,
    move_position,
    plan_of,
    restore_times,
)

FREE = st.integers(0, 2**32 - 1)


def begun(problem: Problem) -> tuple[Indices, Indices]:
    """HEFT's plan as an order by starts, and its nodes."""
    result = planned(problem.graph, problem.work, problem.fleet, STRATEGIES["heft"](problem))
    place = np.empty(len(result.start))
    place[problem.graph.sequence] = np.arange(len(place))
    return np.lexsort((place, result.start)), result.node


def unlimited(problem: Problem) -> Problem:
    """Without limits of memory, which a search does not look at."""
    return problem._replace(work=problem.work._replace(memory=np.zeros(len(problem.average))))


@settings(max_examples=25)
@given(graph=layered(20), nodes=st.integers(1, 4), seed=FREE)
def test_a_plan_in_the_order_of_its_starts_is_never_later(graph: tuple[int, Edges], nodes: int, seed: int) -> None:
    problem = unlimited(drawn_problem(np.random.default_rng(seed), *graph, nodes))
    heft = planned(problem.graph, problem.work, problem.fleet, STRATEGIES["heft"](problem))
    again = plan_of(*begun(problem), problem.graph, problem.work, problem.fleet)
    assert (again.end <= heft.end + 1e-9).all()
    check_plan(problem, again, problem.work.cost)


@settings(max_examples=25)
@given(graph=layered(20), nodes=st.integers(2, 4), seed=FREE)
def test_attempts_taken_back_leave_nothing(graph: tuple[int, Edges], nodes: int, seed: int) -> None:
    """And a later begin times what a whole timing would."""
    random = np.random.default_rng(seed)
    problem = unlimited(drawn_problem(random, *graph, nodes))
    edges, work, fleet = problem[:3]
    order, node = begun(problem)
    at, rest = course(order, node, fleet.processors), np.zeros(len(order))
    latest, _, _ = compute_times(at, edges, work, fleet, rest, 0, np.inf)
    for limit in (np.inf, latest * 0.9) * 10:
        chain = critical_chain(at, latest)
        before = [part.copy() for part in (at.order, at.turn, at.node, at.end, at.cause)]
        count, old, new, begin = attempt(at, edges, work, fleet, chain, random.uniform(size=DRAWS))
        reached, _, until = compute_times(at, edges, work, fleet, rest, begin, limit)
        if np.isfinite(reached):
            assert plan_of(at.order, at.node, edges, work, fleet).end.tolist() == at.end.tolist()
        restore_times(at, begin, until)
        move_position(at, new, old)
        at.node[at.moved[:count][::-1]] = at.previous_node[:count][::-1]
        after = (at.order, at.turn, at.node, at.end, at.cause)
        assert all(np.array_equal(was, now) for was, now in zip(before, after, strict=True))


def test_the_critical_chain_explains_the_end() -> None:
    problem = problem_of(TOPCUOGLU)
    order, node = begun(problem)
    at = course(order, node, problem.fleet.processors)
    latest, total, until = compute_times(at, *problem[:3], np.zeros(10), 0, np.inf)
    assert (latest, until) == (80, 10)
    assert total == pytest.approx(at.end.sum())
    chain = at.on[: critical_chain(at, latest)].tolist()
    assert chain[0] == 9
    assert chain[-1] == 0
    for task, cause in pairwise(chain):
        start = at.end[task] - problem.work.cost[task, at.node[task]]
        assert at.node[cause] != at.node[task] or at.end[cause] == start


def test_a_limit_ends_a_timing_early() -> None:
    problem = problem_of(TOPCUOGLU)
    order, node = begun(problem)
    at = course(order, node, problem.fleet.processors)
    reached, _, until = compute_times(at, *problem[:3], np.zeros(10), 0, 40.0)
    assert np.isinf(reached)
    assert 0 < until < 10


def test_money_counts_where_it_is_weighed() -> None:
    """Two tasks side by side on two rented nodes, or one after the other on the cheaper one."""
    random = np.random.default_rng(0)
    problem = unlimited(drawn_problem(random, 2, {}, 2))
    fleet = problem.fleet._replace(price=np.array([1.0, 100.0]), startup=np.zeros(2), billing=np.ones(2))
    one = np.ones(2, np.int64)
    work = problem.work._replace(cost=np.full((2, 2), 10.0), submit=np.zeros(2), processors=one)
    problem = problem._replace(fleet=fleet._replace(processors=one, available=np.zeros(2)), work=work)
    order, node = np.arange(2), np.arange(2)
    draws = random.uniform(size=(500, DRAWS))
    objective = SearchObjective(1e-6, 1.0)
    result = anneal_course(course(order, node, one), *problem[:3], np.zeros(2), objective, draws)
    plan = plan_of(result[0], result[1], *problem[:3])
    assert plan.node.tolist() == [0, 0]
    assert money(problem, plan) == pytest.approx(result[2])
    quick = anneal_course(course(order, node, one), *problem[:3], np.zeros(2), SearchObjective(), draws)
    assert length(plan_of(quick[0], quick[1], *problem[:3])) <= length(plan)
