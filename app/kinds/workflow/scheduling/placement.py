"""Placement of tasks on machines, and their ranks."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Ranks of the tasks of a workflow: how much of it still hangs on each task.
#
# Plain functions over arrays that also compile. ``average`` is a task's run time averaged over the nodes, seconds [N];
# ``along`` is the time its data take along each edge between two different nodes, averaged over their pairs, seconds
# [E].


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


# Where tasks run: every task in turn at the earliest time at which a node has room for it, between others if need be.
#
# The insertion-based policy of HEFT (Topcuoglu, Hariri and Wu 2002), for nodes with several processors and limited
# memory. Plain functions over arrays that also compile.


SPARE = 16  # spans that a calendar has room for at first


class Work(NamedTuple):
    """What there is to do.

    Attributes:
        cost: run time of each task on each node, seconds; infinite where it may not run, [N, M].
        submit: seconds, before which a task does not start, [N].
        processors: [N].
        memory: bytes; 0 where unknown, [N].
        data: bytes along each edge, [E].
    """

    cost: Floats
    submit: Floats
    processors: Indices
    memory: Floats
    data: Floats


class Fleet(NamedTuple):
    """What it is done on.

    Attributes:
        processors: [M].
        memory: bytes, [M].
        pace: seconds that a byte takes to or from another node, [M]; the slower of two nodes counts.
        available: seconds, from which a node takes tasks, [M].
        price: per second, [M].
        billing: rented time is billed in whole multiples of so many seconds, [M].
        startup: seconds that are rented before a node's first task, [M]; 0 where it runs anyway.
    """

    processors: Indices
    memory: Floats
    pace: Floats
    available: Floats
    price: Floats
    billing: Floats
    startup: Floats


class Rule(NamedTuple):
    """In which order tasks are placed, and which node each one gets.

    Of the nodes on which a task ends by its ``latest``, it gets the one of the smallest ``time_weight * (end + bias) +
    cost_weight * money``, where money is what the node's bill grows by; if there is none, that of the smallest
    ``end + bias``.

    Attributes:
        order: all tasks, every one after its parents, [N].
        bias: seconds, added to the end on each node; infinite where a task must not run, [N, M].
        latest: seconds, [N].
        time_weight: weight of a second.
        cost_weight: weight of a unit of money.
    """

    order: Indices
    bias: Floats
    latest: Floats
    time_weight: float
    cost_weight: float


class Plan(NamedTuple):
    """Where and when each task is to run: seconds [N], seconds [N], index of a node [N] (−1: it fits none)."""

    start: Floats
    end: Floats
    node: Indices


class Calendar(NamedTuple):
    """What is free on each node over time: from ``time[j, k]`` on until the next, or for ever.

    Attributes:
        time: ascending, seconds, [M, C].
        processors: free, [M, C].
        memory: free, bytes, [M, C].
        spans: how many of the C are in use, [M].
    """

    time: Floats
    processors: Indices
    memory: Floats
    spans: Indices


def opened(fleet: Fleet, room: int) -> Calendar:
    """All nodes empty from when they are available, with ``room`` spans each."""
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
    """The same with twice the room."""
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
    """First time from ``ready`` on at which node ``j`` has room for ``duration`` seconds; infinite if it never has."""
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
    """Make a span of node ``j`` begin ``at`` seconds, not before its first, and return which it is."""
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
    """Take processors and memory of node ``j`` from ``start`` to ``end``; it must have room for two more spans."""
    if end > start:
        first = split(calendar, j, start)
        after = split(calendar, j, end)
        for k in range(first, after):
            calendar.processors[j, k] -= processors
            calendar.memory[j, k] -= memory


def arrival(graph: Graph, work: Work, fleet: Fleet, plan: Plan, task: int, j: int) -> float:
    """When all data of ``task`` can be on node ``j``, seconds: they leave the parents' nodes when those have ended."""
    at = work.submit[task]
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        there = plan.end[parent]
        if plan.node[parent] != j:
            there += work.data[e] * max(fleet.pace[plan.node[parent]], fleet.pace[j])
        at = max(at, there)
    return at


def bill(fleet: Fleet, j: int, begun: float, ended: float) -> float:
    """What node ``j`` costs with its first task at ``begun`` and its last one's end at ``ended``, seconds."""
    if ended <= begun:
        return 0.0
    held = ended - begun + fleet.startup[j]
    return np.ceil(held / fleet.billing[j] - 1e-9) * fleet.billing[j] * fleet.price[j]


def offer(
    fleet: Fleet, rule: Rule, task: int, j: int, at: float, end: float, begun: Floats, ended: Floats
) -> tuple[bool, float]:
    """What ``rule`` thinks of ``task`` on node ``j`` from ``at`` to ``end``: whether it is late, and how bad it is.

    ``begun`` and ``ended`` are when each node's first task starts and its last one ends, infinite without any, [M].
    """
    worth = end + rule.bias[task, j]
    if end > rule.latest[task]:
        return True, worth
    if rule.cost_weight > 0:
        more = bill(fleet, j, min(begun[j], at), max(ended[j], end)) - bill(fleet, j, begun[j], ended[j])
        return False, rule.time_weight * worth + rule.cost_weight * more
    return False, worth


def planned(graph: Graph, work: Work, fleet: Fleet, rule: Rule) -> Plan:
    """Place every task in the order of ``rule``; a task that fits no node, and what comes after it, ends never."""
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
