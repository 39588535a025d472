"""Plans against published ones, a reference implementation, and what every plan must keep."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.workflow.queue import nodes_of
from app.kinds.workflow.scheduling import planning
from app.kinds.workflow.scheduling.placement import Fleet, Floats, Plan, graph, planned
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import independent_jobs
from tests.app.kinds.workflow.graphs import (
    ARABNEJAD,
    TOPCUOGLU,
    Edges,
    edges_of,
    fleet_of,
    layered,
    problem_of,
    work_of,
)

REFERENCE: list[dict[str, Any]] = json.loads((Path(__file__).parent / "reference_plans.json").read_text())["graphs"]
"""Graphs, nodes and the schedules that another implementation made for them; the file says which."""


def played(problem: Problem, strategy: str) -> Plan:
    return planned(problem.graph, problem.work, problem.fleet, STRATEGIES[strategy](problem))


def test_heft_and_cpop_on_the_classic_graph_take_as_long_as_published() -> None:
    assert played(problem_of(TOPCUOGLU), "heft").end.max() == 80
    assert played(problem_of(TOPCUOGLU), "cpop").end.max() == 86


def test_peft_makes_its_published_schedule() -> None:
    plan = played(problem_of(ARABNEJAD), "peft")
    assert plan.start.tolist() == [0, 29, 51, 22, 35, 29, 83, 54, 81, 106]
    assert plan.node.tolist() == [0, 0, 0, 0, 2, 1, 0, 1, 2, 1]
    assert plan.end.max() == 122
    assert played(problem_of(ARABNEJAD), "heft").end.max() == 133  # as the same article says


@pytest.mark.parametrize("strategy", ["heft", "cpop"])
@pytest.mark.parametrize("number", range(len(REFERENCE)))
def test_heft_and_cpop_equal_a_reference(strategy: str, number: int) -> None:
    values = REFERENCE[number]
    speed, links = np.array(values["speed"]), np.array(values["links"])
    nodes = len(speed)
    start, parents, data = edges_of(values["tasks"], {(a, b): size for a, b, size in values["edges"]})
    fleet = fleet_of(nodes)._replace(pace=1 / links)
    cost = np.array(values["work"])[:, None] / speed
    problem = planning.problem(graph(start, parents), work_of(cost, data), fleet)
    pairs = (nodes - 1) / (nodes + 1)  # what is left of the average over pairs with those of one node counted in
    plan = played(problem._replace(along=problem.along * pairs), strategy)
    assert plan.start == pytest.approx(values[strategy]["start"])
    assert plan.node.tolist() == values[strategy]["node"]


def check_plan(problem: Problem, plan: Plan, cost: Floats) -> None:
    """Assert that a plan starts no task early, and no node has more on it than it holds."""
    edges, work, fleet = problem.graph, problem.work, problem.fleet
    assert plan.end == pytest.approx(plan.start + cost[np.arange(len(cost)), plan.node])
    assert (plan.start >= np.maximum(work.submit, fleet.available[plan.node])).all()
    for child in range(len(cost)):
        for e in range(edges.parent_start[child], edges.parent_start[child + 1]):
            parent = edges.parents[e]
            there, here = plan.node[parent], plan.node[child]
            along = 0.0 if there == here else work.data[e] * max(fleet.pace[there], fleet.pace[here])
            assert plan.start[child] >= plan.end[parent] + along - 1e-9
    for at, here in zip(plan.start, plan.node, strict=True):
        running = (plan.node == here) & (plan.start <= at) & (plan.end > at)
        assert work.processors[running].sum() <= fleet.processors[here]
        assert work.memory[running].sum() <= fleet.memory[here] + 1e-9


def drawn_problem(random: np.random.Generator, count: int, edges: Edges, nodes: int) -> Problem:
    """Tasks of several processors and some memory, on nodes that start up."""
    start, parents, data = edges_of(count, edges)
    speed, processors = random.uniform(0.5, 3, nodes), random.integers(1, 5, nodes)
    memory = random.uniform(4, 16, nodes)
    processors[0], memory[0] = 4, 16.0
    work = work_of(np.zeros((count, nodes)), data, random.integers(1, 5, count), random.uniform(0, 16, count))
    fits = (work.processors[:, None] <= processors) & (work.memory[:, None] <= memory)
    cost = np.where(fits, random.uniform(0, 30, count)[:, None] / speed, np.inf)
    startup = random.uniform(0, 20, nodes)
    prices = random.uniform(0, 2, nodes)
    fleet = Fleet(processors, memory, random.uniform(0, 2, nodes), startup, prices, np.full(nodes, 10.0), startup)
    work = work._replace(cost=cost, submit=random.uniform(0, 20, count))
    return planning.problem(graph(start, parents), work, fleet, random.uniform(20, 200, count))


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
@settings(max_examples=40)
@given(drawn=layered(20), nodes=st.integers(1, 4), seed=st.integers(0, 2**32 - 1))
def test_no_plan_breaks_precedence_capacity_or_a_start_up(
    strategy: str, drawn: tuple[int, Edges], nodes: int, seed: int
) -> None:
    problem = drawn_problem(np.random.default_rng(seed), *drawn, nodes)
    check_plan(problem, played(problem, strategy), problem.work.cost)


def test_deadlines_buy_speed_only_where_it_is_needed() -> None:
    """Two tasks in a row: the slow node takes 20 s for each, the fast one 10 s at four times the price."""
    start, parents, data = edges_of(2, {(0, 1): 0.0})
    cost = np.array([[20.0, 10.0], [20.0, 10.0]])
    price = np.array([1.0, 4.0])
    fleet = fleet_of(2)._replace(price=price)

    def by(due: float) -> list[int]:
        problem = planning.problem(graph(start, parents), work_of(cost, data), fleet, np.array([np.inf, due]))
        return list(played(problem, "deadline").node)

    assert by(60.0) == [0, 0]
    assert by(35.0) == [0, 1]  # after the first one's 20 s, 15 are left for the second
    assert by(20.0) == [1, 1]


def test_the_cheapest_node_is_the_one_whose_bill_grows_least() -> None:
    """The second task of 10 s fits into what is already billed of the dear node's 30 s."""
    start, parents, data = edges_of(2, {(0, 1): 0.0})
    cost = np.array([[np.inf, 10.0], [20.0, 10.0]])
    fleet = fleet_of(2)._replace(price=np.array([1.0, 4.0]), billing=np.array([1.0, 30.0]))
    problem = planning.problem(graph(start, parents), work_of(cost, data), fleet)
    assert played(problem, "cheapest").node.tolist() == [1, 1]
    assert played(problem._replace(fleet=fleet._replace(billing=np.ones(2))), "cheapest").node.tolist() == [1, 0]


def test_kept_nodes_are_used_before_any_is_rented() -> None:
    two = np.full(2, 10.0)
    trace = independent_jobs(0 * two, two, two, np.ones(2, np.int64), np.zeros(2, np.int64))
    types = (
        NodeType(name="own", processors=1, price_per_hour=9, minimum=1, maximum=1),
        NodeType(name="rented", processors=1, price_per_hour=1, maximum=1),
    )
    problem = planning.problem_of(trace, nodes_of(types))
    assert played(problem, "cheapest").node.tolist() == [0, 0]
    assert sorted(played(problem, "heft").node.tolist()) == [0, 1]


def test_a_task_larger_than_any_node_is_an_error() -> None:
    ones = np.ones(1)
    trace = independent_jobs(0 * ones, ones, ones, np.array([9]), np.zeros(1, np.int64))
    nodes = nodes_of((NodeType(name="small", processors=8, maximum=2),))
    with pytest.raises(ValueError, match="task 0 is larger than any node: 9 processors"):
        planning.problem_of(trace, nodes)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_mean_pace_is_that_of_all_pairs(count: int) -> None:
    pace = np.random.default_rng(count).uniform(1, 9, count)
    pairs = [max(pace[i], pace[j]) for i in range(count) for j in range(count) if i != j]
    assert planning.mean_pace(pace) == pytest.approx(np.mean(pairs) if pairs else 0.0)
