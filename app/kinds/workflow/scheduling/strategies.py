"""In which order ready tasks start: priority rules, and ranks in the workflows that tasks belong to."""

from collections.abc import Callable

import numpy as np

from app.kinds.workflow.queue.state import Floats
from app.kinds.workflow.scheduling.ranks import Graph, critical, downward, levels, upward
from app.kinds.workflow.scheduling.rules import RULES, scores
from app.kinds.workflow.scheduling.situation import QueueSituation

THRIFTY = ("cheapest", "deadline")  # these give a task the node on which it costs least


def _average(situation: QueueSituation) -> Floats:
    """Run time of each task averaged over the types of nodes that fit it, seconds, [N]."""
    cost = _cost(situation)
    fits = np.isfinite(cost)
    average: Floats = np.where(fits, cost, 0.0).sum(axis=1) / np.maximum(fits.sum(axis=1), 1)
    return average


def _cost(situation: QueueSituation) -> Floats:
    """Run time of each task on each type of node, seconds, infinite where it doesn't fit, [N, T]."""
    nodes, first = situation.layout.nodes, situation.layout.first[:-1]
    fits = (situation.queue.processors[:, None] <= nodes.processors[first]) & (
        situation.queue.memory[:, None] <= nodes.memory[first]
    )
    cost: Floats = np.where(fits, situation.expected[:, None] / nodes.speed[first], np.inf)
    return cost


def _upward(situation: QueueSituation) -> Floats:
    """Longest way from the start of each task to the end of its workflow, seconds, [N]."""
    average, along = _average(situation).tolist(), (situation.data * situation.pace).tolist()
    return np.array(upward(situation.listed, average, along))


def heft(situation: QueueSituation) -> Floats:
    """By upward rank (Topcuoglu, Hariri and Wu 2002): what hangs most on it first, [N]."""
    return -_upward(situation)


def cpop(situation: QueueSituation) -> Floats:
    """By the length of the longest way through a task, those on the critical path first (same source), [N]."""
    average, along = _average(situation), situation.data * situation.pace
    through = _upward(situation) + downward(situation.listed, average.tolist(), along.tolist())
    on = critical(situation.listed, through.tolist())
    most = through.max(initial=0.0)
    return np.where(on, -through - most, -through)


def peft(situation: QueueSituation) -> Floats:
    """By what follows at best (Arabnejad and Barbosa 2014), [N]."""
    cost, along = _cost(situation), situation.data * situation.pace
    table = np.array(following(situation.listed, cost.T.tolist(), along.tolist()))
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


def level(situation: QueueSituation) -> Floats:
    """Level by level, in each the longest task first, [N]."""
    average = _average(situation)
    return levels(situation.listed) - average / (average.max(initial=0.0) + 1.0)


def deadline(situation: QueueSituation) -> Floats:
    """By the time that is left until a task must start for its deadline and those that follow it, [N]."""
    rest, graph = _upward(situation), situation.listed
    due = np.where(np.isnan(situation.queue.deadline), np.inf, situation.queue.deadline)
    for task in reversed(graph.sequence):
        for k in range(graph.child_start[task], graph.child_start[task + 1]):
            due[task] = min(due[task], due[graph.children[k]])
    left = due - situation.now - rest
    return np.where(np.isfinite(left), left, 1e12 - rest)


RANKS: dict[str, Callable[[QueueSituation], Floats]] = {
    "heft": heft,
    "cpop": cpop,
    "peft": peft,
    "level": level,
    "cheapest": heft,
    "deadline": deadline,
}


def ranking(strategy: str, situation: QueueSituation) -> Floats:
    """Score of each ready task under a strategy, the smallest first, [Q]."""
    ready, queue = situation.ready, situation.queue
    if strategy in RANKS:
        return RANKS[strategy](situation)[ready]
    return scores(
        RULES.index(strategy), situation.now, queue.submit[ready], situation.expected[ready], queue.processors[ready]
    )
