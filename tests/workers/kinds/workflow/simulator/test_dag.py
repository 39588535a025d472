"""Simulated workflows keep to precedence, capacity and start-ups, whatever comes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kinds.workflow.queue import Nodes, nodes_of
from app.kinds.workflow.scheduling.placement import planned
from app.kinds.workflow.scheduling.planning import STRATEGIES, problem_of
from app.kinds.workflow.spec import NodeType
from app.kinds.workflow.trace import Trace
from tests.app.kinds.workflow.graphs import Edges, edges_of, layered
from workers.kinds.workflow.simulator.annealing import plan, plan_by
from workers.kinds.workflow.simulator.dag import dispatch_by, follow_plan, plan_and_follow
from workers.kinds.workflow.simulator.simulate import Schedule, figures, ready
from workers.kinds.workflow.simulator.world import NONE, Breakdowns

MODES = {"planned": plan_and_follow, "dispatched": dispatch_by}


Simulation = Callable[[Trace, Nodes, Breakdowns], Schedule]


class Failures(NamedTuple):
    """Every node breaks down after an exponential time, again and again.

    Attributes:
        mean_seconds: between a repair and the next breakdown.
        repair_seconds: that a node stands still.
        horizon_seconds: after which no node breaks down: tasks longer than a node's life would else never end.
    """

    mean_seconds: float
    repair_seconds: float
    horizon_seconds: float

    def drawn(self, nodes: int, random: np.random.Generator) -> Breakdowns:
        """The breakdowns of so many nodes."""
        broken: list[tuple[int, float]] = []
        for node in range(nodes):
            at = random.exponential(self.mean_seconds)
            while at < self.horizon_seconds:
                broken.append((node, at))
                at += self.repair_seconds + random.exponential(self.mean_seconds)
        at_times = np.array([at for _, at in broken], np.float64)
        which = np.array([node for node, _ in broken], np.int64)
        return Breakdowns(which, at_times, at_times + self.repair_seconds)

    def play(self, simulation: Simulation, trace: Trace, nodes: Nodes, random: np.random.Generator) -> Schedule:
        """``simulation`` of ``trace`` on ``nodes`` that break down."""
        return simulation(trace, nodes, self.drawn(len(nodes.kind), random))


def trace_of(count: int, edges: Edges, runtime: list[float], estimate: list[float] | None = None) -> Trace:
    start, parents, data = edges_of(count, edges)
    unknown = np.full(count, np.nan)
    return Trace(
        names=tuple(map(str, range(count))),
        submit=np.zeros(count),
        runtime=np.array(runtime),
        estimate=np.array(runtime if estimate is None else estimate),
        processors=np.ones(count, np.int64),
        memory=unknown,
        user=np.zeros(count, np.int64),
        deadline=unknown,
        group=np.zeros(count, np.int64),
        parent_start=start,
        parents=parents,
        data=data,
    )


def drawn(seed: int, count: int, edges: Edges, kinds: int, exact: bool) -> tuple[Trace, Nodes]:
    """Tasks of several processors and some memory, wrong estimates, nodes to be rented."""
    random = np.random.default_rng(seed)
    runtime = random.uniform(0, 30, count) * (random.uniform(size=count) < 0.8)
    trace = trace_of(count, edges, list(runtime), None if exact else list(runtime * random.lognormal(0, 0.7, count)))
    trace = trace._replace(
        submit=np.sort(random.uniform(0, 30, count)),
        processors=random.integers(1, 5, count),
        memory=random.uniform(0, 8e9, count),
        deadline=random.uniform(20, 200, count),
    )
    types = tuple(
        NodeType(
            name=f"n{k}",
            processors=4 + k,
            memory_gb=8.0,
            speed=random.uniform(0.5, 3),
            price_per_hour=random.uniform(0, 2),
            billing_seconds=random.choice([1.0, 20.0]),
            startup_seconds=random.uniform(0, 20),
            minimum=int(random.integers(0, 2)),
            maximum=int(random.integers(1, 3)),
            bandwidth_mbps=1e-6 * random.uniform(0.5, 4),
        )
        for k in range(kinds)
    )
    return trace, nodes_of(types)


def check(trace: Trace, nodes: Nodes, schedule: Schedule, prefetched: bool, breakdowns: Breakdowns = NONE) -> None:
    """Assert that no task starts early, and no node has more on it than it holds, or any while it is not there."""
    start, end, node = schedule.start, schedule.end, schedule.node
    assert np.isfinite(end).all()
    assert (start >= ready(trace, schedule)).all()
    for i in range(trace.tasks):
        edges = slice(trace.parent_start[i], trace.parent_start[i + 1])
        parents = trace.parents[edges]
        pace = np.maximum(1 / nodes.bandwidth[node[parents]], 1 / nodes.bandwidth[node[i]])
        along = np.where(node[parents] == node[i], 0.0, trace.data[edges] * pace)
        waits = 0.0 if prefetched else along.max(initial=0.0)
        assert end[i] - start[i] == pytest.approx(trace.runtime[i] / nodes.speed[node[i]] + waits)
        if prefetched:
            assert start[i] >= (end[parents] + along).max(initial=0.0) - 1e-9
        beside = (node == node[i]) & (start <= start[i]) & (end > start[i])
        assert trace.processors[beside].sum() <= nodes.processors[node[i]]
        assert trace.memory[beside].sum() <= nodes.memory[node[i]] + 1
        for k in np.flatnonzero(breakdowns.node == node[i]):
            there = nodes.permanent[node[i]] or billed(schedule, node[i], breakdowns.at[k])
            assert not there or breakdowns.until[k] <= start[i] or breakdowns.at[k] >= end[i]
        assert nodes.permanent[node[i]] or rented(nodes, schedule, i)


def billed(schedule: Schedule, j: int, at: float) -> bool:
    """Whether node ``j`` was rented then."""
    assert schedule.rentals is not None
    node, ordered, released = schedule.rentals
    return bool(((node == j) & (ordered <= at) & (at < released)).any())


def rented(nodes: Nodes, schedule: Schedule, task: int) -> bool:
    """Whether the task's node was rented, and had started up, all the time that it ran."""
    assert schedule.rentals is not None
    node, ordered, released = schedule.rentals
    there = node == schedule.node[task]
    ready_at = ordered + nodes.startup[schedule.node[task]]
    return bool((there & (ready_at <= schedule.start[task] + 1e-9) & (released >= schedule.end[task])).any())


@pytest.mark.parametrize("mode", sorted(MODES))
@pytest.mark.parametrize("strategy", ["heft", "cheapest", "deadline"])
@settings(max_examples=30)
@given(graph=layered(20), kinds=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_nothing_starts_early_or_where_there_is_no_room(
    mode: str, strategy: str, graph: tuple[int, Edges], kinds: int, seed: int
) -> None:
    trace, nodes = drawn(seed, *graph, kinds, exact=False)
    check(trace, nodes, MODES[mode](trace, nodes, strategy), mode == "planned")


@pytest.mark.parametrize("mode", sorted(MODES))
@settings(max_examples=30)
@given(graph=layered(20), kinds=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_nodes_that_fail_lose_their_tasks_and_nothing_else(
    mode: str, graph: tuple[int, Edges], kinds: int, seed: int
) -> None:
    trace, nodes = drawn(seed, *graph, kinds, exact=False)
    failures = Failures(mean_seconds=60.0, repair_seconds=15.0, horizon_seconds=600.0)
    breakdowns = failures.drawn(len(nodes.kind), np.random.default_rng(seed))

    def strict(trace: Trace, nodes: Nodes, values: Breakdowns) -> Schedule:
        assert values.at.tolist() == breakdowns.at.tolist()
        return MODES[mode](trace, nodes, "heft", values)

    schedule = failures.play(strict, trace, nodes, np.random.default_rng(seed))
    check(trace, nodes, schedule, mode == "planned", breakdowns)


@settings(max_examples=60)
@given(graph=layered(20), kinds=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_a_plan_made_with_true_run_times_comes_true(graph: tuple[int, Edges], kinds: int, seed: int) -> None:
    """Nodes are ordered in time and not released where they would come back too late; nothing is ever later.

    Tasks that take no time may be earlier: they take no room, while the plan lets them wait for it.
    """
    trace, nodes = drawn(seed, *graph, kinds, exact=True)
    for strategy in ("heft", "peft", "cpop"):
        plan = plan_by(problem_of(trace, nodes), strategy)
        schedule = follow_plan(trace, nodes, plan)
        assert (schedule.start <= plan.start + 1e-9).all()
        assert schedule.start == pytest.approx(plan.start) or (trace.runtime == 0).any()
        assert schedule.node.tolist() == plan.node.tolist()


@settings(max_examples=20)
@given(graph=layered(20), kinds=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_compiled_plans_are_the_plain_functions_own(graph: tuple[int, Edges], kinds: int, seed: int) -> None:
    problem = problem_of(*drawn(seed, *graph, kinds, exact=False))
    for rule in (STRATEGIES[name](problem) for name in STRATEGIES):
        plain, compiled = planned(problem.graph, problem.work, problem.fleet, rule), plan(problem, rule)
        assert plain.start.tolist() == compiled.start.tolist()
        assert plain.node.tolist() == compiled.node.tolist()


def test_idle_nodes_are_released_at_the_end_of_a_billed_period_and_ordered_again() -> None:
    """One node, 10 s to start, billed by the minute: a task from 10 to 20 s, the next one submitted at 200 s."""
    trace = trace_of(2, {(0, 1): 0.0}, [10.0, 30.0])._replace(submit=np.array([0.0, 200.0]))
    node = NodeType(name="n", processors=1, price_per_hour=3600, billing_seconds=60, startup_seconds=10, maximum=1)
    schedule = plan_and_follow(trace, nodes_of((node,)), "heft")
    assert schedule.rentals is not None
    assert schedule.start.tolist() == [10, 200]
    assert schedule.rentals.ordered.tolist() == [0, 190]  # the plan knows when it is needed
    assert schedule.rentals.released.tolist() == [60, 230]
    assert figures(trace, nodes_of((node,)), schedule).cost == 120
    late = dispatch_by(trace, nodes_of((node,)), "heft")
    assert late.start.tolist() == [10, 210]  # who decides when tasks are ready does not


def test_a_dispatcher_does_better_than_a_plan_when_estimates_are_wrong() -> None:
    """Two tasks of 10 s and two that were thought to be as long, but one takes 40 s: the plan waits behind it."""
    trace = trace_of(4, {}, [40.0, 10.0, 10.0, 10.0], [10.0, 10.0, 9.0, 8.0])
    nodes = nodes_of((NodeType(name="n", processors=1, minimum=2, maximum=2),))
    assert plan_and_follow(trace, nodes, "heft").end.max() == 50
    assert dispatch_by(trace, nodes, "heft").end.max() == 40


def test_a_task_without_a_place_in_the_plan_is_an_error() -> None:
    trace = trace_of(2, {}, [1.0, 1.0])
    nodes = nodes_of((NodeType(name="n", processors=1, maximum=1),))
    plan = plan_by(problem_of(trace, nodes), "heft")
    with pytest.raises(ValueError, match="task 1 has no place in the plan"):
        follow_plan(trace, nodes, plan._replace(node=np.array([0, -1])))
