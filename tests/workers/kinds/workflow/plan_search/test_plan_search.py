"""Searched plans of what is left: never worse than HEFT's; what runs stays where it is; their lengths are true."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.workflow.plans import WORTHWHILE, Remaining, SearchResult
from app.kinds.workflow.scheduling.planning import STRATEGIES
from tests.app.kinds.workflow.graphs import Edges, edges_of, layered
from workers.kinds.workflow import plan_search as beginnings
from workers.kinds.workflow.plan_search import _free, _initial_course, base, by_rule, problem_of, search_plan
from workers.kinds.workflow.simulator.annealing import DRAWS, SHORT, anneal, anneal_course, compute_times, course, rest

SEEDS = st.integers(0, 2**32 - 1)


def drawn(random: np.random.Generator, count: int, edges: Edges, nodes: int, fixed: int) -> Remaining:
    """A graph of which the first ``fixed`` tasks have ended (even ones) or run (odd ones), each alone on its node."""
    fixed = min(fixed, count - 1, nodes)
    start, parents, data = edges_of(count, {(a, b): size for (a, b), size in edges.items() if b >= fixed})
    cost = np.outer(random.uniform(1, 20, count), random.choice([0.5, 1.0, 2.0], nodes))
    cost[:fixed] = np.inf
    cost[np.arange(fixed), np.arange(fixed)] = 0.0
    running = np.arange(fixed) % 2
    processors = random.integers(1, 3, count)
    processors[:fixed] = running
    available = random.uniform(0, 5, nodes)
    available[:fixed][running == 1] = 0.0  # what runs tasks has started
    return Remaining(
        start, parents, data, cost, processors, running * random.uniform(1, 30, fixed),
        np.concatenate([np.arange(fixed), np.full(count - fixed, -1)]), np.arange(count),
        np.full(nodes, 2), available, random.uniform(0, 2, nodes),
    )  # fmt: skip


def checked(left: Remaining, search_result: SearchResult) -> None:
    """Every task is after its parents, with its data, on processors of its own; fixed ones are as they were."""
    assert search_result.end[: left.fixed].tolist() == left.end.tolist()
    assert search_result.node[: left.fixed].tolist() == left.node[: left.fixed].tolist()
    assert sorted(search_result.order.tolist()) == list(range(len(left.node)))
    for task in range(left.fixed, len(left.node)):
        j, edges = search_result.node[task], range(*left.parent_start[task : task + 2])
        wait = 0.0
        for e in edges:
            parent = left.parents[e]
            assert search_result.start[task] >= search_result.end[parent] - 1e-9
            if search_result.node[parent] != j:
                wait = max(wait, left.data[e] * max(left.pace[search_result.node[parent]], left.pace[j]))
        assert search_result.end[task] == np.float64(search_result.start[task] + wait + left.cost[task, j])
        assert search_result.start[task] >= left.available[j]
    for at in search_result.start[left.fixed :]:
        runs = (search_result.start <= at) & (search_result.end > at)
        runs[: left.fixed] = left.end > at
        current = np.bincount(search_result.node[runs], left.processors[runs], minlength=len(left.slots))
        assert (current <= left.slots).all()


@settings(max_examples=25, deadline=None)
@given(graph=layered(20), nodes=st.integers(1, 4), fixed=st.integers(0, 4), seed=SEEDS)
def test_plans_are_feasible_and_better_or_the_bases_own(
    graph: tuple[int, Edges], nodes: int, fixed: int, seed: int
) -> None:
    left = drawn(np.random.default_rng(seed), *graph, nodes, fixed)
    plan = search_plan(left, attempts=200)
    checked(left, plan)
    live = left.end.max(initial=0.0)
    length = max(plan.end.max(), live)
    assert length <= max(plan.base, live) + 1e-9
    if plan.better:
        assert length < plan.base * (1 - WORTHWHILE)
        assert length <= plan.heft + 1e-9
    else:
        own = base(left, problem_of(left))
        assert own.length == plan.base
        assert plan.node.tolist() == own.node.tolist()


@settings(max_examples=15, deadline=None)
@given(graph=layered(20), nodes=st.integers(1, 4), fixed=st.integers(0, 4), seed=SEEDS)
def test_compiled_beginnings_are_the_plain_functions_own(
    graph: tuple[int, Edges], nodes: int, fixed: int, seed: int
) -> None:
    left = drawn(np.random.default_rng(seed), *graph, nodes, fixed)
    problem = problem_of(left)
    rule = STRATEGIES["heft"](problem)
    own, by_heft = (_initial_course(left, np.arange(len(left.node)), left.node) for _ in range(2))
    assert beginnings.dispatch_tasks(own, *problem[:3], _free(left, rule)) == base(left, problem).length
    assert own.node.tolist() == base(left, problem).node.tolist()
    length = beginnings.append_tasks(by_heft, *problem[:3], _free(left, rule), rule.bias)
    assert length == by_rule(left, problem, rule).length
    assert by_heft.order.tolist() == by_rule(left, problem, rule).order.tolist()


@settings(max_examples=15, deadline=None)
@given(graph=layered(16), nodes=st.integers(1, 4), fixed=st.integers(0, 4), seed=SEEDS)
def test_compiled_attempts_are_the_plain_functions_own_and_leave_fixed_tasks_alone(
    graph: tuple[int, Edges], nodes: int, fixed: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    left = drawn(random, *graph, nodes, fixed)
    problem = problem_of(left)
    own, draws = base(left, problem), random.uniform(size=(100, DRAWS))
    compiled, plain = (
        search(_initial_course(left, own.order, own.node), *problem[:3], rest(problem), SHORT, draws)
        for search in (anneal, anneal_course)
    )
    assert [part.tolist() for part in compiled[:2]] == [part.tolist() for part in plain[:2]]
    assert compiled[2] == plain[2]
    assert compiled[0][: left.fixed].tolist() == list(range(left.fixed))


def test_a_plan_waits_for_the_better_node() -> None:
    """Two tasks in a chain with much data, and one beside them that takes the quick node first by rank: 10 + 1 + 1."""
    left = Remaining(
        parent_start=np.array([0, 0, 0, 1]), parents=np.array([1]), data=np.array([100.0]),
        cost=np.array([[10.0, 100.0], [1.0, 10.0], [1.0, 10.0]]), processors=np.ones(3, np.int64), end=np.zeros(0),
        node=np.full(3, -1), order=np.arange(3), slots=np.ones(2, np.int64), available=np.zeros(2), pace=np.ones(2),
    )  # fmt: skip
    plan = search_plan(left, attempts=500)
    assert plan.base > 12
    assert plan.better
    assert plan.end.max() == 12
    assert set(plan.node.tolist()) == {0}


def test_where_nothing_waits_there_is_nothing_to_change() -> None:
    left = Remaining(
        parent_start=np.zeros(3, np.int64), parents=np.zeros(0, np.int64), data=np.zeros(0),
        cost=np.array([[0.0, np.inf], [np.inf, 0.0]]), processors=np.ones(2, np.int64), end=np.array([5.0, 9.0]),
        node=np.arange(2), order=np.arange(2), slots=np.ones(2, np.int64), available=np.zeros(2), pace=np.zeros(2),
    )  # fmt: skip
    plan = search_plan(left, attempts=1000)
    assert (plan.end.tolist(), plan.node.tolist(), plan.better) == ([5, 9], [0, 1], False)


def test_the_plan_so_far_is_never_lost() -> None:
    random = np.random.default_rng(4)
    edges = {(0, k): 50.0 for k in range(1, 12)} | {(k, 12): 50.0 for k in range(1, 12)}
    left = drawn(random, 13, edges, 4, 0)
    good = search_plan(left, attempts=20_000)
    again = Remaining(**{**vars(left), "node": good.node, "order": good.order})
    assert search_plan(again, attempts=0).end.max() <= good.end.max() + 1e-9


def test_data_that_are_sent_for_keep_the_processors_waiting() -> None:
    start, parents, data = edges_of(2, {(0, 1): 7.0})
    left = Remaining(
        start, parents, data, np.array([[1.0, np.inf], [np.inf, 2.0]]), np.ones(2, np.int64), np.zeros(0),
        np.array([0, 1]), np.arange(2), np.ones(2, np.int64), np.zeros(2), np.ones(2),
    )  # fmt: skip
    problem = problem_of(left)
    for fetched, begun in ((True, 1.0), (False, 8.0)):
        at = course(left.order, left.node, left.slots, fetched=fetched)
        compute_times(at, *problem[:3], np.zeros(2), 0, np.inf)
        assert (at.start[1], at.end[1]) == (begun, 10.0)
