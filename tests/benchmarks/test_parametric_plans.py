"""The 72 list schedulers: known ones are members, plans are legal, and choices do what they say."""

import numpy as np
import pytest

from app.kinds.workflow.scheduling.placement import Fleet, Plan, Work, graph
from app.kinds.workflow.scheduling.planning import STRATEGIES, Problem, length, problem
from benchmarks.parametric_plans import ALL, END, HEFT, RUN_TIME, START, Scheduler, parametric, worst
from benchmarks.workflow_dags import served
from tests.workers.kinds.workflow.generated import generated
from workers.kinds.workflow.simulator.annealing import compute_times, course, order_of, plan

GIVEN = [generated(np.random.default_rng(seed), 15 + 20 * seed) for seed in range(2)]
CPOP = Scheduler(1, END, append=False, reserved=True, sufferage=False)
MET = Scheduler(2, RUN_TIME, append=True, reserved=False, sufferage=False)


def apart(cost: list[list[float]], edges: list[tuple[int, int]] = [], pace: float = 0.0) -> Problem:  # noqa: B006 - not changed
    """Tasks with run times [N, M]; ``edges``: (parent, child), by child, which take ``pace`` seconds between nodes."""
    costs = np.array(cost)
    count, nodes = costs.shape
    start = np.concatenate([[0], np.cumsum(np.bincount([b for _, b in edges], minlength=count))]).astype(np.int64)
    nothing, ones = np.zeros(nodes), np.ones(count, np.int64)
    fleet = Fleet(np.ones(nodes, np.int64), nothing + np.inf, nothing + pace, nothing, nothing, nothing + 1, nothing)
    work = Work(costs, np.zeros(count), ones, np.zeros(count), np.ones(len(edges)))
    return problem(graph(start, np.array([a for a, _ in edges], np.int64)), work, fleet)


def one(problem: Problem, scheduler: Scheduler) -> Plan:
    return parametric(problem, [scheduler])[0]


@pytest.mark.parametrize("problem", GIVEN)
def test_heft_and_cpop_are_members(problem: Problem) -> None:
    for name, scheduler in (("heft", HEFT), ("cpop", CPOP)):
        known, row = plan(problem, STRATEGIES[name](problem)), one(problem, scheduler)
        np.testing.assert_array_equal(row.node, known.node)
        np.testing.assert_allclose(row.start, known.start)


@pytest.mark.parametrize("problem", GIVEN)
def test_every_plan_is_legal(problem: Problem) -> None:
    assert len({str(scheduler) for scheduler in ALL}) == len(ALL) == 72
    for result in parametric(problem):
        for task in range(len(result.node)):
            edges = range(problem.graph.parent_start[task], problem.graph.parent_start[task + 1])
            for edge, parent in [(e, problem.graph.parents[e]) for e in edges]:
                pace = max(problem.fleet.pace[result.node[[task, parent]]])
                travel = problem.work.data[edge] * pace if result.node[task] != result.node[parent] else 0.0
                assert result.start[task] >= result.end[parent] + travel - 1e-9
        for node in range(len(problem.fleet.pace)):
            own = np.flatnonzero(result.node == node)
            own = own[np.argsort(result.start[own])]
            assert (result.start[own[1:]] >= result.end[own[:-1]] - 1e-9).all()


def test_the_least_run_time_start_or_end_decides() -> None:
    """Two tasks: the first node is quicker for both, and busy with the first of them."""
    values = apart([[4.0, 9.0], [4.0, 7.0]])
    ends = [length(one(values, MET._replace(compare=compare))) for compare in (RUN_TIME, START, END)]
    assert ends == [8.0, 7.0, 7.0]
    assert one(values, MET).node.tolist() == [0, 0]


def test_a_task_goes_between_others_unless_they_are_appended() -> None:
    """On the one quick node the third task waits for the second, elsewhere, and leaves room for the last."""
    values = apart([[1.0, 1e3], [1e3, 5.0], [9.0, 1e3], [2.0, 1e3]], [(1, 2)])
    arbitrary = HEFT._replace(priority=2)
    assert one(values, arbitrary).start.tolist() == [0.0, 0.0, 5.0, 1.0]
    assert one(values, arbitrary._replace(append=True)).start.tolist() == [0.0, 0.0, 5.0, 14.0]


def test_the_task_that_loses_more_by_its_second_node_is_placed_first() -> None:
    values = apart([[2.0, 3.0], [2.0, 50.0]])
    arbitrary = HEFT._replace(priority=2)
    assert length(one(values, arbitrary)) == 4.0
    assert one(values, arbitrary).start.tolist() == [0.0, 2.0]
    assert one(values, arbitrary._replace(sufferage=True)).start.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("given", GIVEN)
def test_plans_whose_tasks_fetch_their_data_are_what_a_live_run_makes_of_them(given: Problem) -> None:
    plans = parametric(given, fetched=True)
    for made in plans:
        at = course(order_of(given, made), made.node, given.fleet.processors, fetched=True)
        compute_times(at, *given[:3], np.zeros(len(made.node)), 0, np.inf)
        np.testing.assert_allclose(at.end, made.end)
    assert served(given) < 1.01 * min(length(made) for made in plans)


def test_a_task_that_fetches_its_data_holds_its_node_meanwhile() -> None:
    """The child and the last task can run on the second node alone, to which data take three seconds."""
    given = apart([[1.0, 1e3], [1e3, 2.0], [1e3, 4.0]], [(0, 1)], pace=3.0)
    arbitrary = [HEFT._replace(priority=2)]
    early, late = (parametric(given, arbitrary, fetched=fetched)[0] for fetched in (False, True))
    assert (early.start.tolist(), early.end.tolist()) == ([0.0, 4.0, 0.0], [1.0, 6.0, 4.0])
    assert (late.start.tolist(), late.end.tolist()) == ([0.0, 1.0, 6.0], [1.0, 6.0, 10.0])
    assert served(given) == 9.0


def test_adversaries_of_a_bad_scheduler_are_found_and_of_the_best_there_are_none() -> None:
    def least(problem: Problem) -> float:
        return min(length(result) for result in parametric(problem))

    def one_node(problem: Problem) -> float:
        return float(problem.work.cost[:, 0].sum())

    ratio, values = worst(one_node, np.random.default_rng(1), 150)
    assert ratio == pytest.approx(one_node(values) / least(values))
    assert ratio > 2.0
    assert worst(one_node, np.random.default_rng(1), 150)[0] == ratio
    assert worst(least, np.random.default_rng(1), 20)[0] == 1.0
