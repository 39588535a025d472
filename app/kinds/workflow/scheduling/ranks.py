"""Ranks of the tasks of a workflow: how much of it still hangs on each task.

Plain functions over arrays that also compile. ``average`` is a task's run time averaged over the nodes, seconds [N];
``along`` is the time its data take along each edge between two different nodes, averaged over their pairs, seconds [E].
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Graph(NamedTuple):
    """The edges of N tasks, seen from both ends.

    Attributes:
        parent_start: the parents of task i are ``parents[parent_start[i]:parent_start[i + 1]]``, [N + 1].
        parents: indices of tasks, [E]; an edge's place here is its number.
        child_start: the children of task i are ``children[child_start[i]:child_start[i + 1]]``, [N + 1].
        children: indices of tasks, [E].
        edge: the number of the edge to each of ``children``, [E].
        sequence: all tasks, every one after its parents, [N].
    """

    parent_start: Indices
    parents: Indices
    child_start: Indices
    children: Indices
    edge: Indices
    sequence: Indices


def graph(parent_start: Indices, parents: Indices) -> Graph:
    """The graph of tasks with these parents.

    Raises:
        ValueError: the tasks depend on each other in a circle.
    """
    count = len(parent_start) - 1
    child_of = np.repeat(np.arange(count), np.diff(parent_start))
    edge = np.argsort(parents, kind="stable")
    child_start = np.concatenate((np.zeros(1, np.int64), np.cumsum(np.bincount(parents, minlength=count))))
    unsorted = Graph(parent_start.copy(), parents.copy(), child_start, child_of[edge], edge, np.arange(count))
    sequence = first_ready(unsorted, np.zeros(count))
    if len(sequence) < count:
        raise ValueError(f"{count - len(sequence)} tasks depend on each other in a circle")
    return unsorted._replace(sequence=sequence)


def first_ready(graph: Graph, priority: Floats) -> Indices:
    """All tasks, every one after its parents, of those that may come next the one of the highest ``priority`` [N].

    Equal priorities come in the order of their indices. Tasks in a circle, or after one, are left out.
    """
    count = len(graph.parent_start) - 1
    missing = np.empty(count, np.int64)
    order = np.empty(count, np.int64)
    ready = [(0.0, 0)]
    ready.pop()
    for task in range(count):
        missing[task] = graph.parent_start[task + 1] - graph.parent_start[task]
        if missing[task] == 0:
            heappush(ready, (-priority[task], task))
    done = 0
    while len(ready) > 0:
        task = heappop(ready)[1]
        order[done] = task
        done += 1
        for k in range(graph.child_start[task], graph.child_start[task + 1]):
            child = graph.children[k]
            missing[child] -= 1
            if missing[child] == 0:
                heappush(ready, (-priority[child], child))
    return order[:done]


def upward(graph: Graph, average: Floats, along: Floats) -> Floats:
    """Longest way from the start of each task to the end of the workflow, seconds [N] (Topcuoglu 2002, eq. 8)."""
    rank = average.copy()
    for k in range(len(graph.sequence) - 1, -1, -1):
        task = graph.sequence[k]
        longest = 0.0
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            longest = max(longest, along[graph.edge[c]] + rank[graph.children[c]])
        rank[task] += longest
    return rank


def downward(graph: Graph, average: Floats, along: Floats) -> Floats:
    """Longest way from the workflow's beginning to the start of each task, seconds [N] (Topcuoglu 2002, eq. 10)."""
    rank = np.zeros(len(average))
    for task in graph.sequence:
        for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
            parent = graph.parents[e]
            rank[task] = max(rank[task], rank[parent] + average[parent] + along[e])
    return rank


def levels(graph: Graph) -> Floats:
    """Most edges between a task without parents and each task, [N]."""
    count = len(graph.sequence)
    return downward(graph, np.ones(count), np.zeros(len(graph.parents)))


def critical(graph: Graph, length: Floats) -> NDArray[np.bool_]:
    """Whether each task is on the critical path, [N]; ``length`` is that of the longest way through it, [N].

    The path begins at the task without parents of the greatest length, and goes on with a child of the same length
    (Topcuoglu 2002, CPOP, steps 5 to 9).
    """
    on = np.zeros(len(length), np.bool_)
    task = -1
    for other in graph.sequence:
        entry = graph.parent_start[other] == graph.parent_start[other + 1]
        if entry and (task < 0 or length[other] > length[task]):
            task = other
    while task >= 0:
        on[task] = True
        following = -1
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            child = graph.children[c]
            if following < 0 and abs(length[child] - length[task]) <= 1e-9 * length[task]:
                following = child
        task = following
    return on


def optimistic(graph: Graph, cost: Floats, along: Floats) -> Floats:
    """Optimistic cost table, seconds [N, M]: what follows each task at best when it runs on each node.

    ``cost`` is each task's run time on each node, infinite where it does not fit, [N, M] (Arabnejad and Barbosa 2014,
    eq. 3).
    """
    tasks, nodes = cost.shape
    table = np.zeros((tasks, nodes))
    for k in range(tasks - 1, -1, -1):
        task = graph.sequence[k]
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            onward = table[graph.children[c]] + cost[graph.children[c]]
            anywhere = onward.min() + along[graph.edge[c]]
            table[task] = np.maximum(table[task], np.minimum(onward, anywhere))
    return table


class Ranks(NamedTuple):
    """The functions that rules are made from; simulators have them compiled."""

    upward: Callable[[Graph, Floats, Floats], Floats]
    downward: Callable[[Graph, Floats, Floats], Floats]
    optimistic: Callable[[Graph, Floats, Floats], Floats]
    first_ready: Callable[[Graph, Floats], Indices]


PLAIN = Ranks(upward, downward, optimistic, first_ready)
