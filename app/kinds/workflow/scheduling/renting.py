"""Which nodes to order and to release: a plain rule for priced types of nodes.

Ready tasks that no rented node has room for are put together, in their order, on nodes that could be ordered: each on
the cheapest type that fits it. A node is ordered when its work takes as long as its start-up, or when one of its tasks
fits no rented node at all. An idle node is released when the period that it is paid for ends before it is likely to be
asked about again, unless a task waits that it could take; those that are always rented stay.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.queue.state import FAILED, STARTING, UP
from app.kinds.workflow.scheduling.situation import QueueSituation

PATIENCE_SECONDS = 60.0  # until the next report, before two have come


class Renting(NamedTuple):
    """Indices of the nodes to order, and of those to release."""

    start: list[int]
    release: list[int]


class Node:
    """A node that is starting, or might be ordered, and what is put on it."""

    def __init__(self, index: int, processors: int, memory: float) -> None:
        self.index, self.processors, self.memory = index, processors, memory
        self.work, self.needed = 0.0, False


def rent(situation: QueueSituation, starts: Sequence[tuple[int, int]], order: Sequence[int]) -> Renting:
    """What to order and release after the decision ``starts``; ``order`` are the ready tasks, the most urgent first."""
    started = {task for task, _ in starts}
    left = [task for task in order if task not in started]
    return Renting(_ordered(situation, left), _released(situation, {node for _, node in starts}, left))


def _ordered(situation: QueueSituation, left: Sequence[int]) -> list[int]:
    nodes, first, rented = situation.layout.nodes, situation.layout.first, situation.state.nodes
    coming = [Node(j, int(nodes.processors[j]), float(nodes.memory[j])) for j in rented if rented[j][0] == STARTING]
    kinds = sorted(range(len(first) - 1), key=lambda kind: (nodes.price[first[kind]] / nodes.speed[first[kind]], kind))
    off = {kind: [j for j in range(first[kind], first[kind + 1]) if j not in rented] for kind in kinds}
    if not any(off.values()):
        return []
    new: list[Node] = []
    rented_kinds = {int(nodes.kind[j]) for j in rented if rented[j][0] != FAILED}
    largest = [(int(nodes.processors[first[k]]), float(nodes.memory[first[k]])) for k in rented_kinds]
    full = np.zeros(len(first) - 1, np.bool_)
    for task in left:
        need, memory = int(situation.queue.processors[task]), float(situation.queue.memory[task])
        node = next((n for n in (*coming, *new) if n.processors >= need and n.memory >= memory), None)
        if node is None:
            kind = next((k for k in kinds if off[k] and _fits(situation, first[k], need, memory)), None)
            if kind is None:
                full[[k for k in kinds if _fits(situation, first[k], need, memory)]] = True
                if full.all():
                    break
                continue
            node = Node(off[kind].pop(0), int(nodes.processors[first[kind]]), float(nodes.memory[first[kind]]))
            new.append(node)
        node.processors, node.memory = node.processors - need, node.memory - memory
        node.work += situation.expected[task] * need / nodes.speed[node.index] / nodes.processors[node.index]
        node.needed = node.needed or not any(need <= most and memory <= size for most, size in largest)
    return [node.index for node in new if node.needed or node.work >= nodes.startup[node.index]]


def _fits(situation: QueueSituation, node: int, need: int, memory: float) -> bool:
    nodes = situation.layout.nodes
    return bool(nodes.processors[node] >= need and nodes.memory[node] >= memory)


def _released(situation: QueueSituation, taken: set[int], left: Sequence[int]) -> list[int]:
    nodes, state = situation.layout.nodes, situation.state
    busy = taken | set(situation.queue.node[situation.running].tolist())
    soon = state.now - state.before if state.before >= 0 else PATIENCE_SECONDS
    need = situation.queue.processors[list(left)] if left else np.zeros(0, np.int64)
    found = []
    for j, (status, since) in state.nodes.items():
        if status != UP or nodes.kept[j] or j in busy or bool((need <= nodes.processors[j]).any()):
            continue
        paid = nodes.billing[j] - (state.now - since) % nodes.billing[j]
        if paid <= soon or nodes.billing[j] <= soon:
            found.append(j)
    return found
