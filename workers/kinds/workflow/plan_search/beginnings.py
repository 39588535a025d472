"""Solutions to begin a search with, for what is left of a workflow while some of it runs.

Plain functions over arrays that also compile. ``urgent`` are the tasks that aren't fixed, each after its parents, the
most urgent first, [N − fixed]; ``at`` is changed, with the ends of its fixed tasks set.
"""

import numpy as np

from app.kinds.workflow.scheduling.placement import Fleet, Work
from app.kinds.workflow.scheduling.ranks import Floats, Graph, Indices
from workers.kinds.workflow.simulator.annealing import Course, replayed, supplied, used


def take(at: Course, work: Work, task: int, j: int, turn: int, start: float, end: float) -> None:
    """``task`` is the next to run, on node ``j``."""
    at.order[turn], at.turn[task], at.node[task] = task, turn, j
    at.start[task], at.end[task] = start, end
    used(at, j, work.processors[task], end, task)


def appended(at: Course, graph: Graph, work: Work, fleet: Fleet, urgent: Indices, bias: Floats) -> float:
    """Each in turn where it ends soonest, ``bias`` [N, M] added, after those before it; the last end, seconds."""
    latest = replayed(at, work, fleet, at.fixed)
    for k in range(len(urgent)):
        task = urgent[k]
        chosen, least, begun, ended = -1, np.inf, 0.0, np.inf
        for j in range(len(fleet.pace)):
            if not np.isfinite(work.cost[task, j] + bias[task, j]):
                continue
            start, wait, _ = supplied(at, graph, work, fleet, task, j)
            start = max(start, at.free[at.first[j] + work.processors[task] - 1])
            end = start + wait + work.cost[task, j]
            if end + bias[task, j] < least:
                chosen, least, begun, ended = j, end + bias[task, j], start, end
        if chosen < 0:
            return np.inf
        take(at, work, task, chosen, at.fixed + k, begun, ended)
        latest = max(latest, ended)
    return latest


def room(at: Course, graph: Graph, work: Work, fleet: Fleet, task: int, now: float) -> tuple[int, float, float]:
    """Of the nodes with room now that on which a ready task ends first (−1: none), its end, and the next room."""
    chosen, ended, following = -1, np.inf, np.inf
    for j in range(len(fleet.pace)):
        if not np.isfinite(work.cost[task, j]):
            continue
        free = at.free[at.first[j] + work.processors[task] - 1]
        if free > now:
            following = min(following, free)
            continue
        _, wait, _ = supplied(at, graph, work, fleet, task, j)
        if now + wait + work.cost[task, j] < ended:
            chosen, ended = j, now + wait + work.cost[task, j]
    return chosen, ended, following


def ready_at(at: Course, graph: Graph, work: Work, task: int) -> float:
    """When all parents have ended; infinite while one has no turn yet."""
    ready = work.submit[task]
    for e in range(graph.parent_start[task], graph.parent_start[task + 1]):
        parent = graph.parents[e]
        if at.turn[parent] < 0:
            return np.inf
        ready = max(ready, at.end[parent])
    return ready


def dispatched(at: Course, graph: Graph, work: Work, fleet: Fleet, urgent: Indices) -> float:
    """Start whatever is ready, wherever it ends first of the nodes with room; the last end, seconds.

    That is what a live queue does by a strategy: no task waits for a better node.
    """
    latest, now, turn = replayed(at, work, fleet, at.fixed), 0.0, at.fixed
    at.turn[urgent] = -1
    while turn < len(at.order):
        following = np.inf
        for task in urgent:
            if at.turn[task] >= 0:
                continue
            ready = ready_at(at, graph, work, task)
            if ready > now:
                following = min(following, ready)
                continue
            j, end, later = room(at, graph, work, fleet, task, now)
            if j < 0:
                following = min(following, later)
                continue
            take(at, work, task, j, turn, now, end)
            turn, latest = turn + 1, max(latest, end)
        if turn < len(at.order) and not np.isfinite(following):
            return np.inf
        now = following
    return latest
