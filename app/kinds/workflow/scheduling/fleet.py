"""Dispatch of a queue on several nodes, and the rental of nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kinds.workflow.queue import FAILED, NOTHING_RESERVED, STARTING, UP, Reservations
from app.kinds.workflow.scheduling import dispatch
from app.kinds.workflow.scheduling.dispatch import EASY, RLS, UNCOMMITTED
from app.kinds.workflow.scheduling.placement import Calendar, earliest, grown, occupy
from app.kinds.workflow.scheduling.situation import QueueSituation

MOST_LOOKS = 1_500  # most reserved tasks × nodes: with many nodes, fewer tasks get reservations


class Window(NamedTuple):
    """Reservation of the first waiting task.

    Attributes:
        task: row of the task that others must not delay; −1: none.
        node: index of the node it will start on; −1: no rented node can hold it.
        until: its start in seconds, if running tasks end as expected.
        spare: processors it leaves free there.
        spare_memory: bytes of memory it leaves free there.
    """

    task: int
    node: int
    until: float
    spare: int
    spare_memory: float


OPEN = Window(-1, -1, float("inf"), 0, 0.0)


class DispatchResult(NamedTuple):
    """Result of a dispatch, by rows of tasks and indices of nodes.

    Attributes:
        starts: (task, node) of the tasks that start now.
        overtook: tasks among them that start before a more urgent one.
        window: reservation of the first waiting task.
        reserved: reservations that later decisions keep.
    """

    starts: list[tuple[int, int]]
    overtook: list[int]
    window: Window
    reserved: Reservations = NOTHING_RESERVED


class UserLimits:
    """Waiting tasks and remaining user limits; tasks are rows of the queue."""

    def __init__(self, situation: QueueSituation) -> None:
        tasks, processors = situation.room()
        self.tasks, self.processors = tasks.tolist(), processors.tolist()
        self.user, self.need = situation.user.tolist(), situation.queue.processors.tolist()
        self.waiting = set(situation.ready.tolist())

    def __contains__(self, task: int) -> bool:
        """Whether the task waits and its user's limits allow it to start."""
        user = self.user[task]
        return task in self.waiting and self.tasks[user] > 0 and self.processors[user] >= self.need[task]

    def take(self, task: int) -> None:
        """Count a task that starts against its user's limits; it no longer waits."""
        user = self.user[task]
        self.tasks[user] -= 1
        self.processors[user] -= self.need[task]
        self.waiting.discard(task)


class Free:
    """Free processors and memory in bytes of nodes that are up; nodes of a type are ordered by free processors."""

    def __init__(self, situation: QueueSituation) -> None:
        nodes, first = situation.layout.nodes, situation.layout.first
        processors = np.bincount(
            situation.queue.node[situation.running],
            situation.queue.processors[situation.running],
            minlength=len(nodes.processors),
        )
        used = np.bincount(
            situation.queue.node[situation.running],
            situation.queue.memory[situation.running],
            minlength=len(nodes.processors),
        )
        self.processors = {j: int(nodes.processors[j] - processors[j]) for j in situation.up}
        self.memory = {j: float(nodes.memory[j] - used[j]) for j in situation.up}
        self.kind = {j: int(nodes.kind[j]) for j in situation.up}
        self.ordered: list[list[tuple[int, int]]] = [[] for _ in first[:-1]]
        for j, free in self.processors.items():
            self.ordered[self.kind[j]].append((free, j))
        for of_type in self.ordered:
            of_type.sort()

    @property
    def most(self) -> int:
        """Largest number of free processors on a node; 0 if no node is up."""
        return max((of_type[-1][0] for of_type in self.ordered if of_type), default=0)

    def best(self, kind: int, need: int, memory: float, without: int = -1) -> int:
        """Return the node of type ``kind`` with enough room and fewest free processors, other than ``without``; −1:
        none. ``need`` is a number of processors, ``memory`` bytes."""
        of_type = self.ordered[kind]
        for at in range(bisect_left(of_type, (need, -1)), len(of_type)):
            node = of_type[at][1]
            if self.memory[node] >= memory and node != without:
                return node
        return -1

    def fits(self, node: int, need: int, memory: float) -> bool:
        """Whether a node is up and has ``need`` processors and ``memory`` bytes free."""
        return self.processors.get(node, -1) >= need and self.memory[node] >= memory

    def hold(self, node: int, need: int, memory: float) -> None:
        """Take ``need`` processors and ``memory`` bytes of a node that is up."""
        of_type, free = self.ordered[self.kind[node]], self.processors[node]
        of_type.pop(bisect_left(of_type, (free, node)))
        insort(of_type, (free - need, node))
        self.processors[node] = free - need
        self.memory[node] -= memory


class Dispatcher:
    """Start of tasks on several nodes in one decision. ``thrifty``: a task goes to the cheapest node, otherwise to the
    node where it ends first."""

    def __init__(self, situation: QueueSituation, *, thrifty: bool) -> None:
        self.situation, self.thrifty = situation, thrifty
        self.free, self.allowed = Free(situation), UserLimits(situation)
        nodes, first = situation.layout.nodes, situation.layout.first[:-1]
        self.speed = [float(nodes.speed[j]) for j in first]
        self.price = [float(nodes.price[j]) for j in first]
        self.need, self.memory = situation.queue.processors.tolist(), situation.queue.memory.tolist()
        self.expected = situation.expected.tolist()
        self.linked = situation.queue.linked
        self.starts: list[tuple[int, int]] = []
        self.until: dict[int, list[tuple[float, int, float]]] = {}

    def node_for(self, task: int, window: Window = OPEN, *, spare: bool = False) -> int:
        """Return the node on which a task can start now without delaying ``window``; −1: none. ``spare``: whether the
        task may also run beyond ``window.until`` on the window's node, within the processors and memory that stay free
        there."""
        need, memory, chosen, value = self.need[task], self.memory[task], -1, (float("inf"), float("inf"))
        candidates = [
            self.free.best(kind, need, memory, -1 if self._passes(task, kind, window, spare=spare) else window.node)
            for kind in range(len(self.speed))
        ]
        if self.linked:  # where a parent's output lies already
            parents = (self.situation.state.ended[parent][0] for parent, _ in self.situation.queue.inputs[task])
            candidates += [
                j
                for j in parents
                if self.free.fits(j, need, memory)
                and (j != window.node or self._passes(task, self.free.kind[j], window, spare=spare))
            ]
        for j in candidates:
            if j >= 0:
                kind = self.free.kind[j]
                seconds = self.expected[task] / self.speed[kind]
                if self.linked:
                    seconds += self.situation.travel(task, j)
                money = seconds * self.price[kind]
                worth = (money, seconds) if self.thrifty else (seconds, money)
                if worth < value:
                    chosen, value = j, worth
        return chosen

    def _passes(self, task: int, kind: int, window: Window, *, spare: bool) -> bool:
        """Return whether ``task`` may start on the node of type ``kind`` that ``window`` reserves for another task: it
        ends before the reservation begins or, if ``spare``, fits into what the other task leaves free there."""
        if window.node < 0:
            return True
        inside = self.situation.now + self.expected[task] / self.speed[kind] <= window.until
        return inside or (spare and self.need[task] <= window.spare and self.memory[task] <= window.spare_memory)

    def start(self, task: int, node: int) -> None:
        """Start ``task`` (row) on ``node`` (index): take its room there, and count it against its user's limits."""
        self.free.hold(node, self.need[task], self.memory[task])
        self.allowed.take(task)
        self.starts.append((task, node))

    def window(self, task: int) -> Window:
        """Return the reservation of a task that fits nowhere now: the node and time where it fits first."""
        situation, window = self.situation, OPEN._replace(task=task)
        for node in [
            *self.free.processors,
            *(j for j, (status, _) in self.situation.state.nodes.items() if status == STARTING),
        ]:
            at, processors, memory = self._earliest(node, self.need[task], self.memory[task])
            if at < window.until:
                left = processors - self.need[task], memory - self.memory[task]
                window = Window(task, node, max(at, situation.now), *left)
        return window

    def _earliest(self, node: int, need: int, memory: float) -> tuple[float, int, float]:
        """Return when, in seconds (infinite: never), a node has room, and its free processors and bytes then."""
        nodes, situation = self.situation.layout.nodes, self.situation
        if nodes.processors[node] < need or nodes.memory[node] < memory:
            return float("inf"), 0, 0.0
        if node not in self.free.processors:
            at = situation.state.nodes[node][1] + float(nodes.startup[node])
            return at, int(nodes.processors[node]), float(nodes.memory[node])
        processors, room, at = self.free.processors[node], self.free.memory[node], situation.now
        for end, count, size in sorted(self._releases(node)):
            if processors >= need and room >= memory:
                break
            processors, room, at = processors + count, room + size, end
        return at, processors, room

    def _releases(self, node: int) -> list[tuple[float, int, float]]:
        """Return the expected end in seconds, processors and bytes of each running or starting task on a node."""
        if not self.until:
            queue = self.situation.queue
            for row, end in zip(self.situation.running.tolist(), self.situation.ends.tolist(), strict=True):
                at = int(queue.node[row])
                self.until.setdefault(at, []).append((end, self.need[row], self.memory[row]))
        fresh = [
            (
                self.situation.now + self.expected[task] / self.speed[self.free.kind[node]],
                self.need[task],
                self.memory[task],
            )
            for task, at in self.starts
            if at == node
        ]
        return [*self.until.get(node, []), *fresh]


def decide(
    situation: QueueSituation, mechanism: int, order: Sequence[int], fill: Sequence[int], head: int, *, thrifty: bool
) -> DispatchResult:
    """Choose the tasks that start now, and their nodes.

    Args:
        situation: queue and nodes at the decision.
        mechanism: backfilling mechanism, an index into ``dispatch.MECHANISMS``, not conservative.
        order: rows of ready tasks, most urgent first.
        fill: rows in the backfilling order.
        head: row of the committed task, which no other may delay; −1: none.
        thrifty: whether tasks go to the cheapest node.
    """
    engine = Dispatcher(situation, thrifty=thrifty)
    window = OPEN
    for task in [head, *order] if head >= 0 and mechanism not in (EASY, UNCOMMITTED) else order:
        if task not in engine.allowed:
            continue
        node = engine.node_for(task)
        if node < 0:
            window = engine.window(task)
            break
        engine.start(task, node)
    first = len(engine.starts)
    if window.task >= 0 and mechanism in (RLS, EASY):
        _overtake(engine, fill, window, spare=mechanism == EASY)
    return DispatchResult(engine.starts, [task for task, _ in engine.starts[first:]], window)


def _overtake(engine: Dispatcher, fill: Sequence[int], window: Window, *, spare: bool) -> None:
    most = engine.free.most
    for task in fill:
        if most == 0:
            break
        if engine.need[task] > most or task == window.task or task not in engine.allowed:
            continue
        node = engine.node_for(task, window, spare=spare)
        if node < 0:
            continue
        late = engine.situation.now + engine.expected[task] / engine.speed[engine.free.kind[node]] > window.until
        engine.start(task, node)
        most = engine.free.most
        if node == window.node and late:
            window = window._replace(
                spare=window.spare - engine.need[task], spare_memory=window.spare_memory - engine.memory[task]
            )


def conservative(situation: QueueSituation, order: Sequence[int]) -> DispatchResult:
    """Choose tasks and nodes by conservative backfilling on several nodes (Mu'alem and Feitelson 2001).

    Each task of ``order`` (rows) in turn gets the earliest time at which a rented node has room besides all earlier
    tasks; those due now start. At most ``dispatch.MOST`` tasks, fewer on many nodes, hold reservations; later decisions
    don't keep them."""
    rented = [j for j, (status, _) in situation.state.nodes.items() if status in (UP, STARTING)]
    speed = situation.layout.nodes.speed
    nodes = sorted(rented, key=lambda j: -float(speed[j]))  # the first with room now is the quickest
    calendar, allowed = _calendar(situation, nodes), UserLimits(situation)
    up = set(situation.up)
    starts: list[tuple[int, int]] = []
    overtook: list[int] = []
    window, reserved = OPEN, 0
    reach = max(8, min(dispatch.MOST, MOST_LOOKS // max(len(nodes), 1)))
    for task in order:
        if task not in allowed:
            continue
        need, memory = int(situation.queue.processors[task]), float(situation.queue.memory[task])
        best, where, length = _first_place(situation, calendar, nodes, task)
        if where < 0:
            continue
        if calendar.spans[where] + 2 > calendar.time.shape[1]:
            calendar = grown(calendar)
        occupy(calendar, where, best, best + length, need, memory)
        if best <= situation.now and nodes[where] in up:
            allowed.take(task)
            starts.append((task, nodes[where]))
            overtook += [task] if reserved else []
            continue
        reserved += 1
        window = window if window.task >= 0 else Window(task, nodes[where], best, 0, 0.0)
        if reserved == reach:
            break
    return DispatchResult(starts, overtook, window)


def _first_place(
    situation: QueueSituation, calendar: Calendar, nodes: Sequence[int], task: int
) -> tuple[float, int, float]:
    """Return the earliest start of a task in seconds, the position in ``nodes`` (−1: none), and its seconds there."""
    all_nodes, linked = situation.layout.nodes, situation.queue.linked
    need, memory = int(situation.queue.processors[task]), float(situation.queue.memory[task])
    fits = (all_nodes.processors[nodes] >= need) & (all_nodes.memory[nodes] >= memory)
    best, where, length = float("inf"), -1, 0.0
    for i in np.flatnonzero(fits).tolist():
        travel = situation.travel(task, nodes[i]) if linked else 0.0
        seconds = float(situation.expected[task] / all_nodes.speed[nodes[i]]) + travel
        at = float(earliest(calendar, i, situation.now, seconds, need, memory))
        if (at, seconds) < (best, length):
            best, where, length = at, i, seconds
        if at <= situation.now and not linked:
            break
    return best, where, length


def _calendar(situation: QueueSituation, nodes: Sequence[int]) -> Calendar:
    """Return the free capacity over time of the rented ``nodes`` (indices), from now on."""
    all_nodes, index, span = (
        situation.layout.nodes,
        {node: i for i, node in enumerate(nodes)},
        2 * len(situation.running) + 8,
    )
    count = len(nodes)
    calendar = Calendar(
        np.full((count, span), np.inf),
        np.zeros((count, span), np.int64),
        np.zeros((count, span)),
        np.ones(count, np.int64),
    )
    for i, node in enumerate(nodes):
        status, since = situation.state.nodes[node]
        ready = max(situation.now, since + all_nodes.startup[node]) if status == STARTING else situation.now
        calendar.time[i, 0], calendar.processors[i, 0] = ready, all_nodes.processors[node]
        calendar.memory[i, 0] = all_nodes.memory[node]
    for row, end in zip(situation.running.tolist(), situation.ends.tolist(), strict=True):
        i = index[int(situation.queue.node[row])]
        occupy(
            calendar, i, situation.now, end, int(situation.queue.processors[row]), float(situation.queue.memory[row])
        )
    return calendar


# Rental rule for priced node types.
#
# Ready tasks that no rented node has room for are packed, in order, on nodes that could be ordered, each on the
# cheapest type that fits. A node is ordered if its work takes as long as its startup, or if one of its tasks fits no
# rented node at all. An idle node is released if its paid period ends before the next report is likely, unless a
# waiting task fits it; permanent nodes stay.


PATIENCE_SECONDS = 60.0  # assumed time until the next report, before two reports show their distance


class Renting(NamedTuple):
    """Indices of the nodes to order, and of those to release."""

    start: list[int]
    release: list[int]


class Node:
    """A node that is starting or could be ordered, its remaining processors and bytes, and its work in seconds."""

    def __init__(self, index: int, processors: int, memory: float) -> None:
        self.index, self.processors, self.memory = index, processors, memory
        self.work, self.needed = 0.0, False


def rent(situation: QueueSituation, starts: Sequence[tuple[int, int]], order: Sequence[int]) -> Renting:
    """Return the nodes to order and release after ``starts``, pairs of row and node. ``order``: rows of ready tasks,
    most urgent first."""
    started = {task for task, _ in starts}
    left = [task for task in order if task not in started]
    return Renting(_nodes_to_order(situation, left), _nodes_to_release(situation, {node for _, node in starts}, left))


def _nodes_to_order(situation: QueueSituation, left: Sequence[int]) -> list[int]:
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


def _nodes_to_release(situation: QueueSituation, taken: set[int], left: Sequence[int]) -> list[int]:
    nodes, state = situation.layout.nodes, situation.state
    busy = taken | set(situation.queue.node[situation.running].tolist())
    soon = state.now - state.before if state.before >= 0 else PATIENCE_SECONDS
    need = situation.queue.processors[list(left)] if left else np.zeros(0, np.int64)
    result = []
    for j, (status, since) in state.nodes.items():
        if status != UP or nodes.permanent[j] or j in busy or bool((need <= nodes.processors[j]).any()):
            continue
        paid = nodes.billing[j] - (state.now - since) % nodes.billing[j]
        if paid <= soon or nodes.billing[j] <= soon:
            result.append(j)
    return result
