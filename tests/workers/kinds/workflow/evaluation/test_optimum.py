"""The optimum is what trying everything finds; schedules of known optimum come out."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from app.kinds.workflow.queue import Nodes, nodes_of, pool
from app.kinds.workflow.spec import Limits, NodeType
from app.kinds.workflow.trace import Trace
from tests.workers.kinds.workflow.evaluation.schedules import drawn, in_turn, jobs
from workers.kinds.workflow.evaluation.episodes import durations, objective_return, reference, terms
from workers.kinds.workflow.evaluation.optimum import MOST_TASKS, Optimum, solve, why_not
from workers.kinds.workflow.simulator.simulate import Schedule, slowdowns

SLOWDOWN = np.array([1.0, 0, 0, 0, 0, 0])
MAKESPAN = np.array([0.0, 0, 1, 0, 0, 0])
MIXED = np.array([0.3, 0.5, 1.0, 2.0, 0.4, 0.2])


def after(trace: Trace, parents: list[tuple[int, int, float]]) -> Trace:
    """``trace`` with edges: child, parent, bytes."""
    parents = sorted(parents)
    starts = np.searchsorted([child for child, _, _ in parents], np.arange(trace.tasks + 1))
    return trace._replace(
        parent_start=starts,
        parents=np.array([parent for _, parent, _ in parents], np.int64),
        data=np.array([data for _, _, data in parents], np.float64),
    )


def everything(trace: Trace, nodes: Nodes, weights: np.ndarray, horizon: int) -> float:
    """The best return of all schedules that start at whole seconds before ``horizon``."""
    seconds, best = durations(trace, nodes), -np.inf
    measure, pace = reference(trace, nodes), 1.0 / nodes.bandwidth
    for node in itertools.product(range(len(nodes.kind)), repeat=trace.tasks):
        where = np.array(node)
        run = seconds[np.arange(trace.tasks), where]
        if not np.isfinite(run).all():
            continue
        for starts in itertools.product(range(horizon), repeat=trace.tasks):
            start = np.array(starts, np.float64)
            schedule = Schedule(start, start + run, where)
            if feasible(trace, nodes, schedule, pace):
                best = max(best, objective_return(weights, terms(trace, nodes, schedule, measure)))
    return best


def feasible(trace: Trace, nodes: Nodes, schedule: Schedule, pace: np.ndarray) -> bool:
    start, end, node, _ = schedule
    if (start < trace.submit).any() or (start < np.where(nodes.permanent, 0, nodes.startup)[node]).any():
        return False
    for task in range(trace.tasks):
        for e in range(trace.parent_start[task], trace.parent_start[task + 1]):
            parent = trace.parents[e]
            transfer = 0.0 if node[parent] == node[task] else trace.data[e] * max(pace[node[parent]], pace[node[task]])
            if start[task] < end[parent] + transfer - 1e-9:
                return False
        beside = (node == node[task]) & (start <= start[task]) & (end > start[task])
        if trace.processors[beside].sum() > nodes.processors[node[task]]:
            return False
    return True


@pytest.mark.parametrize("weights", [SLOWDOWN, MAKESPAN, MIXED], ids=["slowdown", "makespan", "mixed"])
@pytest.mark.parametrize("seed", range(3))
def test_of_batch_jobs_it_is_what_trying_everything_finds(seed: int, weights: np.ndarray) -> None:
    rng = np.random.default_rng(seed)
    count = 4
    trace = jobs([0, 0, 1, 2], rng.integers(1, 4, count).tolist(), rng.integers(1, 4, count).tolist())
    trace = trace._replace(runtime=trace.runtime * 1.0, deadline=np.array([np.nan, 3, 5, 4]))
    dear = nodes_of((NodeType(name="all", processors=3, minimum=1, maximum=1, price_per_hour=1.0, billing_seconds=2),))
    solution = solve(trace, dear, weights)
    assert solution.exact
    assert solution.value == pytest.approx(everything(trace, dear, weights, 9))
    assert feasible(trace, dear, solution.schedule, 1 / dear.bandwidth)


@pytest.mark.parametrize("seed", range(3))
def test_of_workflows_it_is_what_trying_everything_finds(seed: int) -> None:
    rng = np.random.default_rng(seed + 10)
    edges = [(2, 0, 2e6), (2, 1, 1e6), (1, 0, 1e6)][: 1 + seed]
    trace = after(jobs([0, 0, 0], rng.integers(1, 4, 3).tolist(), [1, 1, 2]), edges)
    trace = trace._replace(deadline=np.array([2.0, np.nan, 6.0]))
    nodes = nodes_of(
        (
            NodeType(name="slow", processors=2, minimum=1, maximum=1, bandwidth_mbps=1),
            NodeType(name="fast", processors=1, speed=2, startup_seconds=1, maximum=1, bandwidth_mbps=1),
        )
    )
    trace = trace._replace(runtime=trace.runtime * 2)  # whole seconds on the fast node too
    weights = np.array([0.0, 0, 1, 0.5, 0, 0])
    solution = solve(trace, nodes, weights)
    assert solution.exact
    assert solution.value == pytest.approx(everything(trace, nodes, weights, 11))


def test_shortest_first_is_best_on_one_processor() -> None:
    """Smith's rule: the sum of the ends is least in order of length."""
    trace = jobs([0.0] * 8, [50, 20, 80, 10, 40, 70, 30, 60], [1] * 8)
    solution = solve(trace, pool(1), np.array([0.0, 1, 0, 0, 0, 0]))
    assert solution.exact
    assert np.argsort(solution.schedule.start).tolist() == [3, 1, 6, 4, 0, 7, 5, 2]


def test_two_machines_are_filled_evenly() -> None:
    trace = jobs([0.0] * 7, [7, 5, 4, 4, 3, 3, 2], [1] * 7)
    solution = solve(trace, pool(2), MAKESPAN)
    assert (solution.exact, solution.schedule.end.max()) == (True, 14)


def test_it_is_never_worse_than_what_it_begins_with() -> None:
    for seed in range(4):
        trace = drawn(7, seed, pause=20.0)
        known = in_turn(trace, 16)
        solution = solve(trace, pool(16), SLOWDOWN, known)
        assert solution.exact
        assert slowdowns(trace, solution.schedule).mean() <= slowdowns(trace, known).mean() + 1e-9
        assert solution.value == pytest.approx(1 - slowdowns(trace, solution.schedule).mean())


def test_a_search_that_is_given_up_says_so() -> None:
    trace = drawn(10, 1, pause=5.0)
    solution: Optimum = solve(trace, pool(16), SLOWDOWN, in_turn(trace, 16), branches=5)
    assert not solution.exact
    assert solution.branches > 5
    assert np.isfinite(solution.value)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"trace": drawn(MOST_TASKS + 1, 0)}, "too many"),
        ({"trace": after(jobs([0, 0], [1, 1], [1, 1]), [(1, 0, 0.0)])}, "parents"),
        ({"nodes": nodes_of((NodeType(name="a", processors=4, maximum=1, price_per_hour=1),))}, "come and go"),
        ({"limits": Limits(running_tasks=1)}, "limits"),
    ],
)
def test_what_can_not_be_had_is_said(changed: dict[str, Any], words: str) -> None:
    values: dict[str, Any] = {"trace": jobs([0], [1], [1]), "nodes": pool(4), "weights": MIXED, "limits": Limits()}
    assert why_not(**values) is None
    assert words in str(why_not(**values | changed))
    if "limits" not in changed:
        with pytest.raises(ValueError, match=words):
            solve(**{name: value for name, value in (values | changed).items() if name != "limits"})


def test_a_task_that_fits_nowhere_is_an_error() -> None:
    with pytest.raises(ValueError, match="fits none"):
        solve(jobs([0], [1], [8]), pool(4), MAKESPAN)
