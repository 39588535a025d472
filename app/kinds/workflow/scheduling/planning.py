"""Strategies for workflows as rules of placement: HEFT, CPOP, PEFT, level by level, the cheapest node, deadlines."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.layout import Nodes
from app.kinds.workflow.scheduling.placement import Fleet, Rule, Work
from app.kinds.workflow.scheduling.ranks import (
    Floats,
    Graph,
    critical,
    downward,
    first_ready,
    graph,
    levels,
    optimistic,
    upward,
)
from app.kinds.workflow.trace import Trace

INSTANT = 1e-6  # worth of a second where money is what counts: of nodes that cost the same, the quickest


class Problem(NamedTuple):
    """Tasks to be placed on nodes, and what rules ask of them.

    Attributes:
        average: run time of each task averaged over the nodes that it fits, seconds, [N].
        along: time of the data along each edge, averaged over pairs of different nodes, seconds, [E].
        deadline: by which each task must have ended, seconds; infinite where none is known, [N].
    """

    graph: Graph
    work: Work
    fleet: Fleet
    average: Floats
    along: Floats
    deadline: Floats


def mean_pace(pace: Floats) -> float:
    """Seconds that a byte takes between two different nodes, averaged over pairs; ``pace`` is each node's, [M]."""
    count = len(pace)
    if count < 2:
        return 0.0
    return float((np.sort(pace) * np.arange(count)).sum() * 2 / (count * (count - 1)))


def problem(graph: Graph, work: Work, fleet: Fleet, deadline: Floats | None = None) -> Problem:
    """What rules are made from; without ``deadline`` there is none."""
    fits = np.isfinite(work.cost)
    average = np.where(fits, work.cost, 0.0).sum(axis=1) / np.maximum(fits.sum(axis=1), 1)
    due = np.full(len(average), np.inf) if deadline is None else deadline
    return Problem(graph, work, fleet, average, work.data * mean_pace(fleet.pace), due)


def fleet_of(nodes: Nodes) -> Fleet:
    """The nodes as a plan sees them at time 0, when none but the kept ones runs.

    Kept nodes are paid for whatever runs on them: to use them costs nothing more.
    """
    startup, price = np.where(nodes.kept, 0.0, nodes.startup), np.where(nodes.kept, 0.0, nodes.price)
    return Fleet(nodes.processors, nodes.memory, 1.0 / nodes.bandwidth, startup, price, nodes.billing, startup)


def work_of(trace: Trace, nodes: Nodes, runtime: Floats) -> Work:
    """The tasks of ``trace``, each with these seconds of ``runtime`` at speed 1, [N].

    Raises:
        ValueError: a task fits none of the nodes.
    """
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)
    fits = (trace.processors[:, None] <= nodes.processors) & (memory[:, None] <= nodes.memory)
    if not fits.any(axis=1).all():
        task = int(np.flatnonzero(~fits.any(axis=1))[0])
        raise ValueError(
            f"task {trace.names[task]} is larger than any node: {trace.processors[task]} processors, "
            f"{memory[task] / 1e9:.3g} GB of memory"
        )
    cost = np.where(fits, runtime[:, None] / nodes.speed, np.inf)
    data = np.where(np.isnan(trace.data), 0.0, trace.data)
    return Work(cost, trace.submit.copy(), trace.processors.copy(), memory, data)


def problem_of(trace: Trace, nodes: Nodes, runtime: Floats | None = None) -> Problem:
    """``trace`` on ``nodes``, planned with ``runtime`` (what a scheduler expects, if not given), seconds [N].

    Raises:
        ValueError: a task fits none of the nodes, or tasks depend on each other in a circle.
    """
    seconds = trace.expected if runtime is None else runtime
    deadline = np.where(np.isnan(trace.deadline), np.inf, trace.deadline)
    edges = graph(trace.parent_start, trace.parents)
    return problem(edges, work_of(trace, nodes, seconds), fleet_of(nodes), deadline)


def _rule(given: Problem, priority: Floats, bias: Floats | None = None) -> Rule:
    tasks = len(priority)
    order = first_ready(given.graph, priority)
    none = np.zeros(given.work.cost.shape) if bias is None else bias
    return Rule(order, none, np.full(tasks, np.inf), 1.0, 0.0)


def heft(given: Problem) -> Rule:
    """Heterogeneous earliest finish time (Topcuoglu, Hariri and Wu 2002)."""
    return _rule(given, upward(given.graph, given.average, given.along))


def cpop(given: Problem) -> Rule:
    """Critical path on a processor: all of it on the node that runs it soonest (same source)."""
    priority = upward(given.graph, given.average, given.along) + downward(given.graph, given.average, given.along)
    on = critical(given.graph, priority)
    bias = np.zeros(given.work.cost.shape)
    node = int(np.argmin(given.work.cost[on].sum(axis=0)))
    pinned = on & np.isfinite(given.work.cost[:, node])
    bias[pinned] = np.inf
    bias[pinned, node] = 0.0
    return _rule(given, priority, bias)


def peft(given: Problem) -> Rule:
    """Predict earliest finish time: by what follows at best (Arabnejad and Barbosa 2014)."""
    table = optimistic(given.graph, given.work.cost, given.along)
    return _rule(given, table.mean(axis=1), table)


def level(given: Problem) -> Rule:
    """Level by level, in each the longest task first."""
    depth = levels(given.graph)
    longest = given.average.max(initial=0.0) + 1.0
    return _rule(given, -depth - 1 + given.average / longest)


def cheapest(given: Problem) -> Rule:
    """In HEFT's order, each task where the bill grows least."""
    return heft(given)._replace(time_weight=INSTANT, cost_weight=1.0)


def deadline(given: Problem) -> Rule:
    """In HEFT's order, each task where the bill grows least of the nodes on which what follows it can still be in time.

    What follows takes its upward rank on the average node; the deadline of a task without one is its children's.
    """
    rest = upward(given.graph, given.average, given.along)
    latest = given.deadline.copy()
    for task in given.graph.sequence[::-1]:
        for k in range(given.graph.child_start[task], given.graph.child_start[task + 1]):
            child, edge = given.graph.children[k], given.graph.edge[k]
            before = latest[child] - given.average[child] - given.along[edge]
            latest[task] = min(latest[task], before)
    order = first_ready(given.graph, rest)
    return Rule(order, np.zeros(given.work.cost.shape), latest, INSTANT, 1.0)


STRATEGIES: dict[str, Callable[[Problem], Rule]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "level": level,
    "cheapest": cheapest,
    "deadline": deadline,
}
