"""Ranks of tasks in workflows, and insertion-based placement on nodes; also compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Ranks of tasks: the length of what depends on each.
#
# Functions over arrays that also compile. ``average``: run time averaged over nodes, seconds [N]; ``along``: transfer
# time along each edge between different nodes, averaged over pairs, seconds [E].


Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


class Graph(NamedTuple):
    """E edges between N tasks, from both ends.

    Attributes:
        parent_start: parents of task i are ``parents[parent_start[i]:parent_start[i + 1]]``, [N + 1].
        parents: task indices, [E]; the position is the edge's number.
        child_start: children of task i are ``children[child_start[i]:child_start[i + 1]]``, [N + 1].
        children: task indices, [E].
        edge: number of the edge to each of ``children``, [E].
        sequence: tasks in topological order, [N].
    """

    parent_start: Indices
    parents: Indices
    child_start: Indices
    children: Indices
    edge: Indices
    sequence: Indices


def graph(parent_start: Indices, parents: Indices) -> Graph:
    """Return the graph of N tasks from their E parents, compressed sparse rows [N + 1] and [E].

    Raises:
        ValueError: there is a cycle.
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
    """Return a topological order of N tasks by descending ``priority`` [N] among ready tasks, ties by index. Tasks in
    or after a cycle are left out."""
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
    """Return the upward rank of N tasks: longest path from a task's start to the workflow's end, seconds, [N].
    ``average``: run times in seconds [N]; ``along``: transfer seconds by edge [E] (Topcuoglu et al., 2002, eq. 8)."""
    rank = average.copy()
    for k in range(len(graph.sequence) - 1, -1, -1):
        task = graph.sequence[k]
        longest = 0.0
        for c in range(graph.child_start[task], graph.child_start[task + 1]):
            longest = max(longest, along[graph.edge[c]] + rank[graph.children[c]])
        rank[task] += longest
    return rank


def downward(graph: Graph, average: Floats, along: Floats) -> Floats:
    """Return the downward rank of N tasks: longest path from the workflow's start to a task's start, seconds, [N].
    ``average``: run times in seconds [N]; ``along``: transfer seconds by edge [E] (Topcuoglu et al., 2002, eq. 10)."""
    rank = np.zeros(len(average))
    for task in graph.sequence:
        for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
            parent = graph.parents[e]
            rank[task] = max(rank[task], rank[parent] + average[parent] + along[e])
    return rank


def levels(graph: Graph) -> Floats:
    """Return the level of each of N tasks: most edges on a path to it from a task without parents, [N]."""
    count = len(graph.sequence)
    return downward(graph, np.ones(count), np.zeros(len(graph.parents)))


def critical(graph: Graph, length: Floats) -> NDArray[np.bool_]:
    """Return whether each of N tasks is on the critical path, [N]. The path begins at the entry task of greatest
    ``length``, the longest path through a task in seconds [N], and continues with a child of equal length (CPOP;
    Topcuoglu et al., 2002, steps 5 to 9)."""
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
    """Return the optimistic cost table: least seconds after each of N tasks if it runs on each of M nodes, [N, M].
    ``cost``: run times in seconds, infinite if it doesn't fit, [N, M]; ``along``: transfer seconds by edge, [E]
    (Arabnejad and Barbosa 2014, eq. 3)."""
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
    """Rank functions used by rules; simulators pass compiled ones of the same signatures."""

    upward: Callable[[Graph, Floats, Floats], Floats]
    downward: Callable[[Graph, Floats, Floats], Floats]
    optimistic: Callable[[Graph, Floats, Floats], Floats]
    first_ready: Callable[[Graph, Floats], Indices]


PLAIN = Ranks(upward, downward, optimistic, first_ready)


# Placement: each task in turn at the earliest time at which a node has room, also between other tasks.
#
# The insertion-based policy of HEFT (Topcuoglu, Hariri and Wu 2002), for nodes with several processors and limited
# memory. Functions over arrays that also compile.


SPARE = 16  # spans that a calendar has room for at first


class Work(NamedTuple):
    """N tasks to place on M nodes, with E edges.

    Attributes:
        cost: run time of each task on each node, seconds; infinite where it can't run, [N, M].
        submit: earliest start, seconds, [N].
        processors: number of processors, [N].
        memory: bytes; 0: unknown, [N].
        data: bytes along each edge, [E].
    """

    cost: Floats
    submit: Floats
    processors: Indices
    memory: Floats
    data: Floats


class Fleet(NamedTuple):
    """M nodes to place tasks on.

    Attributes:
        processors: number of processors, [M].
        memory: bytes, [M].
        pace: seconds per byte to or from other nodes, [M]; the slower node of a pair counts.
        available: time from which a node accepts tasks, seconds, [M].
        price: price per second, [M].
        billing: billing period, seconds, [M].
        startup: rented seconds before a node's first task, [M]; 0 if it runs anyway.
    """

    processors: Indices
    memory: Floats
    pace: Floats
    available: Floats
    price: Floats
    billing: Floats
    startup: Floats


class Rule(NamedTuple):
    """Order of placement of N tasks, and choice among M nodes for each. Among the nodes on which a task ends by
    ``latest``, it gets the one of least ``time_weight * (end + bias) + cost_weight * money``, where money is the
    increase of the node's bill; if there is none, that of least ``end + bias``.

    Attributes:
        order: tasks in topological order, [N].
        bias: seconds added to the end on each node; infinite: excluded, [N, M].
        latest: time in seconds by which each task should end, [N].
        time_weight: weight of a second.
        cost_weight: weight of a unit of money.
    """

    order: Indices
    bias: Floats
    latest: Floats
    time_weight: float
    cost_weight: float


class Plan(NamedTuple):
    """Start and end in seconds, and node index (−1: fits none), of each of N tasks, [N] each."""

    start: Floats
    end: Floats
    node: Indices


class Calendar(NamedTuple):
    """Free capacity of M nodes over time: that of entry k of node j holds from ``time[j, k]`` until the next entry.

    Attributes:
        time: seconds, ascending, in up to C entries, [M, C].
        processors: free processors, [M, C].
        memory: free bytes, [M, C].
        spans: number of entries in use, [M].
    """

    time: Floats
    processors: Indices
    memory: Floats
    spans: Indices


def opened(fleet: Fleet, room: int) -> Calendar:
    """Return a calendar of empty nodes from when they are available, with ``room`` entries each."""
    count = len(fleet.processors)
    calendar = Calendar(
        np.full((count, room), np.inf),
        np.zeros((count, room), np.int64),
        np.zeros((count, room)),
        np.ones(count, np.int64),
    )
    for j in range(count):
        calendar.time[j, 0] = fleet.available[j]
        calendar.processors[j, 0] = fleet.processors[j]
        calendar.memory[j, 0] = fleet.memory[j]
    return calendar


def grown(calendar: Calendar) -> Calendar:
    """Return a copy of ``calendar`` with twice the number of entries per node."""
    count, room = calendar.time.shape
    time = np.full((count, 2 * room), np.inf)
    processors = np.zeros((count, 2 * room), np.int64)
    memory = np.zeros((count, 2 * room))
    for j in range(count):
        for k in range(room):  # loops: slices take seconds to compile
            time[j, k] = calendar.time[j, k]
            processors[j, k] = calendar.processors[j, k]
            memory[j, k] = calendar.memory[j, k]
    return Calendar(time, processors, memory, calendar.spans)


def earliest(calendar: Calendar, j: int, ready: float, duration: float, processors: int, memory: float) -> float:
    """Return the first time from ``ready`` on, in seconds, at which node ``j`` has room for ``duration`` seconds. It is
    infinite if the node never has ``processors`` and ``memory`` (bytes) free."""
    times, last = calendar.time[j], calendar.spans[j] - 1
    low, high = 0, last
    while low < high:  # the span in which `ready` lies
        middle = (low + high + 1) // 2
        if times[middle] <= ready:
            low = middle
        else:
            high = middle - 1
    start = max(ready, times[low])
    for k in range(low, last + 1):
        if calendar.processors[j, k] < processors or calendar.memory[j, k] < memory:
            start = times[k + 1] if k < last else np.inf
        elif k == last or times[k + 1] >= start + duration:
            return start
    return start


def split(calendar: Calendar, j: int, at: float) -> int:
    """Make an entry of node ``j`` begin at ``at`` seconds, not before its first; return its index."""
    times, count = calendar.time[j], calendar.spans[j]
    k = count
    while times[k - 1] > at:
        k -= 1
    if times[k - 1] == at:
        return k - 1
    for i in range(count, k, -1):
        times[i] = times[i - 1]
        calendar.processors[j, i] = calendar.processors[j, i - 1]
        calendar.memory[j, i] = calendar.memory[j, i - 1]
    times[k] = at
    calendar.processors[j, k] = calendar.processors[j, k - 1]
    calendar.memory[j, k] = calendar.memory[j, k - 1]
    calendar.spans[j] = count + 1
    return k


def occupy(calendar: Calendar, j: int, start: float, end: float, processors: int, memory: float) -> None:
    """Take processors and memory (bytes) of node ``j`` from ``start`` to ``end`` seconds; needs two unused entries."""
    if end > start:
        first = split(calendar, j, start)
        after = split(calendar, j, end)
        for k in range(first, after):
            calendar.processors[j, k] -= processors
            calendar.memory[j, k] -= memory


def arrival(graph: Graph, work: Work, fleet: Fleet, plan: Plan, task: int, j: int) -> float:
    """Return when, in seconds, all input of ``task`` can be on node ``j``, transferred from when its parents end."""
    at = work.submit[task]
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        there = plan.end[parent]
        if plan.node[parent] != j:
            there += work.data[e] * max(fleet.pace[plan.node[parent]], fleet.pace[j])
        at = max(at, there)
    return at


def bill(fleet: Fleet, j: int, begun: float, ended: float) -> float:
    """Return the price of node ``j`` from its first task's start ``begun`` to its last task's end ``ended``, in
    seconds. Its startup is billed too, and time is rounded up to billing periods; 0 without a task."""
    if ended <= begun:
        return 0.0
    seconds = ended - begun + fleet.startup[j]
    return np.ceil(seconds / fleet.billing[j] - 1e-9) * fleet.billing[j] * fleet.price[j]


def offer(
    fleet: Fleet, rule: Rule, task: int, j: int, at: float, end: float, begun: Floats, ended: Floats
) -> tuple[bool, float]:
    """Return whether ``task`` on node ``j`` from ``at`` to ``end`` is late by ``rule``, and its penalty (smaller is
    better). ``begun``, ``ended``: start of each of M nodes' first task and end of its last, seconds, [M]; infinite and
    −infinite: none."""
    worth = end + rule.bias[task, j]
    if end > rule.latest[task]:
        return True, worth
    if rule.cost_weight > 0:
        more = bill(fleet, j, min(begun[j], at), max(ended[j], end)) - bill(fleet, j, begun[j], ended[j])
        return False, rule.time_weight * worth + rule.cost_weight * more
    return False, worth


def planned(graph: Graph, work: Work, fleet: Fleet, rule: Rule) -> Plan:
    """Place all tasks in the order of ``rule``; times are seconds. Tasks that fit no node, and their descendants, have
    an infinite end and node −1."""
    tasks, nodes = work.cost.shape
    plan = Plan(np.full(tasks, np.inf), np.full(tasks, np.inf), np.full(tasks, -1))
    calendar = opened(fleet, SPARE)
    begun, ended = np.full(nodes, np.inf), np.full(nodes, -np.inf)
    for task in rule.order:
        chosen, start, best = -1, np.inf, (True, np.inf)
        processors, memory = work.processors[task], work.memory[task]
        for j in range(nodes):
            duration = work.cost[task, j]
            if not np.isfinite(duration + rule.bias[task, j]):
                continue
            at = earliest(calendar, j, arrival(graph, work, fleet, plan, task, j), duration, processors, memory)
            offered = offer(fleet, rule, task, j, at, at + duration, begun, ended)
            if offered < best:
                chosen, start, best = j, at, offered
        if chosen >= 0:
            end = start + work.cost[task, chosen]
            if calendar.spans[chosen] + 2 > calendar.time.shape[1]:
                calendar = grown(calendar)
            occupy(calendar, chosen, start, end, processors, memory)
            plan.start[task], plan.end[task], plan.node[task] = start, end, chosen
            begun[chosen], ended[chosen] = min(begun[chosen], start), max(ended[chosen], end)
    return plan
