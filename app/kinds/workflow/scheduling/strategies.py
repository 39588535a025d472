"""In which order ready tasks start: priority rules, and ranks in the workflows that tasks belong to."""

from collections.abc import Callable

import numpy as np

from app.kinds.workflow.queue.state import Floats
from app.kinds.workflow.scheduling.ranks import Graph, critical, downward, levels, upward
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.scheduling.situation import Scene

THRIFTY = ("cheapest", "deadline")  # these give a task the node on which it costs least


def _average(scene: Scene) -> Floats:
    """Run time of each task averaged over the types of nodes that fit it, seconds, [N]."""
    cost = _cost(scene)
    fits = np.isfinite(cost)
    average: Floats = np.where(fits, cost, 0.0).sum(axis=1) / np.maximum(fits.sum(axis=1), 1)
    return average


def _cost(scene: Scene) -> Floats:
    """Run time of each task on each type of node, seconds, infinite where it doesn't fit, [N, T]."""
    nodes, first = scene.layout.nodes, scene.layout.first[:-1]
    fits = (scene.queue.processors[:, None] <= nodes.processors[first]) & (
        scene.queue.memory[:, None] <= nodes.memory[first]
    )
    cost: Floats = np.where(fits, scene.expected[:, None] / nodes.speed[first], np.inf)
    return cost


def _upward(scene: Scene) -> Floats:
    """Longest way from the start of each task to the end of its workflow, seconds, [N]."""
    average, along = _average(scene).tolist(), (scene.data * scene.pace).tolist()
    return np.array(upward(scene.listed, average, along))


def heft(scene: Scene) -> Floats:
    """By upward rank (Topcuoglu, Hariri and Wu 2002): what hangs most on it first, [N]."""
    return -_upward(scene)


def cpop(scene: Scene) -> Floats:
    """By the length of the longest way through a task, those on the critical path first (same source), [N]."""
    average, along = _average(scene), scene.data * scene.pace
    through = _upward(scene) + downward(scene.listed, average.tolist(), along.tolist())
    on = critical(scene.listed, through.tolist())
    most = through.max(initial=0.0)
    return np.where(on, -through - most, -through)


def peft(scene: Scene) -> Floats:
    """By what follows at best (Arabnejad and Barbosa 2014), [N]."""
    cost, along = _cost(scene), scene.data * scene.pace
    table = np.array(following(scene.listed, cost.T.tolist(), along.tolist()))
    finite = np.where(np.isfinite(table), table, 0.0)
    return -finite.mean(axis=0)


def following(graph: Graph, cost: list[list[float]], along: list[float]) -> list[list[float]]:
    """``ranks.optimistic`` over plain lists, a list for each type of node [T, N], of costs likewise.

    For a few types of nodes, arrays would cost more than they save.
    """
    table, onward = [[0.0] * len(column) for column in cost], [column.copy() for column in cost]
    both, least = list(zip(table, onward, strict=True)), list(map(min, zip(*cost, strict=True)))
    for task in reversed(graph.sequence):
        first, last = graph.child_start[task], graph.child_start[task + 1]
        for k in range(first, last):
            child = graph.children[k]
            limit = least[child] + along[graph.edge[k]]
            for rest, after in both:
                there = after[child]
                if there > limit:
                    there = limit
                if there > rest[task]:
                    rest[task] = there
        if first < last:
            for rest, after in both:
                after[task] += rest[task]
            least[task] = min([after[task] for _, after in both])
    return table


def level(scene: Scene) -> Floats:
    """Level by level, in each the longest task first, [N]."""
    average = _average(scene)
    return levels(scene.listed) - average / (average.max(initial=0.0) + 1.0)


def deadline(scene: Scene) -> Floats:
    """By the time that is left until a task must start for its deadline and those that follow it, [N]."""
    rest, graph = _upward(scene), scene.listed
    due = np.where(np.isnan(scene.queue.deadline), np.inf, scene.queue.deadline)
    for task in reversed(graph.sequence):
        for k in range(graph.child_start[task], graph.child_start[task + 1]):
            due[task] = min(due[task], due[graph.children[k]])
    left = due - scene.now - rest
    return np.where(np.isfinite(left), left, 1e12 - rest)


RANKS: dict[str, Callable[[Scene], Floats]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "level": level,
    "cheapest": heft,
    "deadline": deadline,
}


def ranking(strategy: str, scene: Scene) -> Floats:
    """Score of each ready task under a strategy, the smallest first, [Q]."""
    ready, queue = scene.ready, scene.queue
    if strategy in RANKS:
        return RANKS[strategy](scene)[ready]
    return scores(RULES.index(strategy), scene.now, queue.submit[ready], scene.expected[ready], queue.processors[ready])
