"""What a schedule is worth to a workload: the terms of its objective, and the return that they come to."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import HOUR, Nodes
from app.kinds.workflow.trace import Trace
from workers.kinds.workflow.simulator.schedule import Schedule, figures

Floats = NDArray[np.float64]


class Reference(NamedTuple):
    """What terms are measured by.

    Attributes:
        makespan: no schedule ends sooner after the first submission, seconds.
        cost: of the work alone on the cheapest nodes; 0 where they cost nothing.
    """

    makespan: float
    cost: float


def durations(trace: Trace, nodes: Nodes) -> Floats:
    """Seconds that each task takes on each node; infinite where it does not fit, [N, M]."""
    memory = np.where(np.isnan(trace.memory), 0.0, trace.memory)[:, None]
    fits = (trace.processors[:, None] <= nodes.processors) & (memory <= nodes.memory)
    return np.where(fits, trace.runtime[:, None] / nodes.speed, np.inf)


def reference(trace: Trace, nodes: Nodes) -> Reference:
    """Bounds that hold for every schedule of ``trace`` on ``nodes``.

    Raises:
        ValueError: a task is larger than any node.
    """
    seconds = durations(trace, nodes)
    shortest = seconds.min(axis=1)
    if not np.isfinite(shortest).all():
        task = int(np.flatnonzero(~np.isfinite(shortest))[0])
        raise ValueError(f"task {trace.names[task]} fits none of the nodes")
    spread = (trace.runtime * trace.processors).sum() / (nodes.processors * nodes.speed).sum()
    longest = _earliest_ends(trace, shortest).max() - trace.submit.min()
    rate = nodes.price / nodes.processors
    money = np.multiply(seconds, rate, out=np.full_like(seconds, np.inf), where=np.isfinite(seconds))
    cost = float((money.min(axis=1) * trace.processors).sum())
    return Reference(max(float(longest), float(spread), 1e-9), cost)


def _earliest_ends(trace: Trace, shortest: Floats) -> Floats:
    """When each task ends at the earliest if there are nodes for all, seconds, [N]."""
    ends = trace.submit + shortest
    if not len(trace.parents):
        return ends
    children = np.repeat(np.arange(trace.tasks), np.diff(trace.parent_start))
    for _ in range(trace.tasks):  # as often as the longest chain is deep
        before = trace.submit.copy()
        np.maximum.at(before, children, ends[trace.parents])
        following = before + shortest
        if (following <= ends).all():
            break
        ends = following
    return ends


def terms(trace: Trace, nodes: Nodes, schedule: Schedule, measure: Reference) -> Floats:
    """What is paid for, in the order of ``spec.TERMS``, [6]: less is better, and 0 is as good as can be."""
    result = figures(trace, nodes, schedule)
    return np.array(
        [
            result.slowdown - 1.0,
            result.wait / HOUR,
            result.makespan / measure.makespan - 1.0,
            result.misses,
            1.0 - result.utilisation,
            result.cost / measure.cost if measure.cost > 0 else 0.0,
        ]
    )


def objective_return(weights: Floats, paid: Floats) -> float:
    """The return of terms [6]; larger is better."""
    return -float(weights @ paid)
