"""State and events of simulated workflows, and how the kind's own functions are compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from heapq import heappush
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba.extending import overload, register_jitable
from numpy.typing import NDArray

import app.kinds.workflow
from app.kinds.workflow.scheduling.placement import Fleet, Floats, Graph, Indices, Work
from workers.kinds.compiling import Compiler, Function

OWN = Path(__file__).parent
kernel = Compiler(OWN, Path(app.kinds.workflow.__file__).parent, OWN).kernel


def compilable(*functions: Callable[..., object]) -> None:
    """Let compiled kernels call the plain Python ``functions``."""
    for function in functions:
        register_jitable(function)


def compiled_as(plain: Callable[..., object]) -> Callable[[Function], Function]:
    """Return a decorator of functions that compiled code then calls wherever the kind's code calls ``plain``."""

    def decorate(function: Function) -> Function:
        def typed(*_: object) -> Function:
            return function

        vars(typed)["__signature__"] = inspect.signature(function)
        overload(plain)(typed)
        return function

    return decorate


END, UP, ORDER, WAKE, BREAK, RELEASE = 0, 1, 2, 3, 4, 5  # releases come after the decision at the same time
WAITING, READY, RUNNING, DONE = 0, 1, 2, 3
OFF, STARTING, ON, DOWN = 0, 1, 2, 3
Event = tuple[float, int, int, int]
"""Seconds; kind of event; index of its task, node or breakdown; the task's attempt."""
Rental = tuple[int, float, float]
"""Node, and seconds at which its billing began and ended."""


class Breakdowns(NamedTuple):
    """K failures of nodes, in which all running tasks are lost.

    Attributes:
        node: index of the node, [K].
        at: seconds at which it fails, [K].
        until: seconds at which it works again, [K]; a node's failures do not overlap.
    """

    node: Indices
    at: Floats
    until: Floats


NONE = Breakdowns(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


class World(NamedTuple):
    """State of a simulation of N tasks on M nodes; times are in seconds.

    Attributes:
        status: WAITING for submission or parents, READY, RUNNING or DONE, [N].
        missing: number of unfinished parents, plus 1 until submitted, [N].
        attempt: number of starts and of losses by failures, [N].
        start: seconds at which the last attempt took its processors, infinite before, [N].
        end: seconds at which the task ended; infinite before, [N].
        node: index of the task's node, −1 before it has one, [N].
        until: expected end of a running task, seconds, [N].
        power: OFF, STARTING, ON or DOWN, [M].
        ordered: seconds since which the node is billed, [M].
        ready: seconds from which a starting or failed node accepts tasks, [M].
        processors: free processors, [M].
        memory: free bytes, [M].
        running: number of running tasks, [M].
        next: position in the node's queue of the plan, [M].
    """

    status: Indices
    missing: Indices
    attempt: Indices
    start: Floats
    end: Floats
    node: Indices
    until: Floats
    power: Indices
    ordered: Floats
    ready: Floats
    processors: Indices
    memory: Floats
    running: Indices
    next: Indices


class Queues(NamedTuple):
    """A plan of N tasks by node: the tasks ``task[start[j]:start[j + 1]]`` run on node j, only in this order.

    Attributes:
        start: offsets into ``task``, [M + 1].
        task: indices of tasks by node and order, [N]; [0]: there is no plan, tasks are dispatched.
        planned: planned start of each task, seconds, [N].
        node: planned node of each task, [N].
    """

    start: Indices
    task: Indices
    planned: Floats
    node: Indices


def initial_world(graph: Graph, work: Work, fleet: Fleet, mask: NDArray[np.bool_]) -> World:
    """Make the state before any submission; nodes in ``mask`` [M] are on, others off."""
    tasks, nodes = work.cost.shape
    missing = graph.parent_start[1:] - graph.parent_start[:-1] + 1
    return World(
        np.full(tasks, WAITING), missing, np.zeros(tasks, np.int64),
        np.full(tasks, np.inf), np.full(tasks, np.inf), np.full(tasks, -1), np.full(tasks, np.inf),
        np.where(mask, ON, OFF), np.zeros(nodes), np.zeros(nodes),
        fleet.processors.copy(), fleet.memory.copy(), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64),
    )  # fmt: skip


def order(world: World, fleet: Fleet, events: list[Event], now: float, j: int) -> None:
    """Rent node ``j`` from ``now`` (seconds) on, if it is off."""
    if world.power[j] == OFF:
        world.power[j], world.ordered[j], world.ready[j] = STARTING, now, now + fleet.startup[j]
        heappush(events, (world.ready[j], UP, j, 0))


def launch(world: World, work: Work, events: list[Event], task: int, j: int, now: float, data: float) -> None:
    """Start ``task`` on node ``j`` at ``now``; it also holds its processors for ``data`` seconds of transfer."""
    world.status[task], world.node[task], world.start[task] = RUNNING, j, now
    world.attempt[task] += 1
    world.processors[j] -= work.processors[task]
    world.memory[j] -= work.memory[task]
    world.running[j] += 1
    heappush(events, (now + data + work.cost[task, j], END, task, world.attempt[task]))


def idle(world: World, fleet: Fleet, mask: NDArray[np.bool_], events: list[Event], now: float, j: int) -> None:
    """Schedule the release of node ``j`` for the end of its billing period after ``now`` (seconds), if it is idle and
    not always on (``mask`` [M])."""
    if world.running[j] == 0 and world.power[j] == ON and not mask[j]:
        periods = np.ceil((now - world.ordered[j]) / fleet.billing[j] - 1e-9)
        heappush(events, (max(now, world.ordered[j] + periods * fleet.billing[j]), RELEASE, j, 0))


def leave(world: World, work: Work, task: int) -> None:
    """Free the processors and memory of ``task`` on its node."""
    j = world.node[task]
    world.processors[j] += work.processors[task]
    world.memory[j] += work.memory[task]
    world.running[j] -= 1


def fail_node(world: World, work: Work, queues: Queues, j: int, until: float, events: list[Event]) -> None:
    """Fail node ``j`` until ``until`` seconds if it is rented: its running tasks are lost and become ready."""
    if world.power[j] == OFF:
        return
    world.power[j], world.ready[j] = DOWN, max(until, world.ready[j])
    heappush(events, (world.ready[j], UP, j, 0))
    for task in range(len(world.status)):
        if world.status[task] == RUNNING and world.node[task] == j:
            leave(world, work, task)
            world.status[task], world.attempt[task] = READY, world.attempt[task] + 1
    if len(queues.task) > 0:
        world.next[j] = queues.start[j]


def is_needed_soon(world: World, fleet: Fleet, queues: Queues, j: int, now: float) -> bool:
    """Return whether node ``j``, if released at ``now`` (seconds), would start up late for its next planned task."""
    if len(queues.task) == 0 or world.next[j] >= queues.start[j + 1]:
        return False
    return queues.planned[queues.task[world.next[j]]] - now < fleet.startup[j]


def release(
    world: World, fleet: Fleet, queues: Queues, rentals: list[Rental], events: list[Event], j: int, now: float
) -> None:
    """End the rental of node ``j`` at ``now`` if it is idle and not needed soon; push its next order by the plan."""
    if world.power[j] != ON or world.running[j] > 0 or is_needed_soon(world, fleet, queues, j, now):
        return
    rentals.append((j, world.ordered[j], now))
    world.power[j] = OFF
    if len(queues.task) > 0 and world.next[j] < queues.start[j + 1]:
        at = queues.planned[queues.task[world.next[j]]] - fleet.startup[j]
        heappush(events, (max(now, at), ORDER, j, 0))


compilable(order, launch, idle, leave, fail_node, is_needed_soon, release)
