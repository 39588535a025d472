"""Search for plans of the remaining tasks, and simulations ahead, in a child process."""

from __future__ import annotations

import atexit
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from app import installed
from app.charts.text import exact
from app.kinds.workflow.plans import Floats, Indices, QueuePlan, Remaining, SearchResult, decode, encode
from app.kinds.workflow.queue import STARTING, UP
from app.kinds.workflow.scheduling.situation import QueueSituation

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Search in a child process, found by the entry-point group ``steward.plan_searches``.
#
# It is compiled code, kept out of serving processes. The child starts with the first request; until it is ready, or if
# it fails, the caller continues without a plan. One search runs at a time, and other decisions never wait for it.


GROUP, NAME = "steward.plan_searches", "workflow"
LIMIT_SECONDS = 5.0  # longest wait for a result, which takes less than a fifth of a second of an idle processor
CLOSING_SECONDS = 0.5
PAUSE_SECONDS = 60.0  # between an end of the child and the next start


class SearchUnavailableError(Exception):
    """No plan can be searched for now; the message is the reason."""


def search_module() -> str:
    """Return the module of the installed search, for ``python -m``; empty if it, or its compiler, is not there."""
    result = (point.value for point in installed.points(GROUP) if point.name == NAME)
    return next(result, "") if find_spec("numba") else ""


class PlanSearch:
    """Callable that searches a plan for remaining tasks in a child process; thread-safe.

    Args:
        module: function that returns the name of the module to run; empty: no search is installed.
        clock: function that returns seconds, for pauses after failures.
    """

    def __init__(self, module: Callable[[], str] = search_module, clock: Callable[[], float] = time.monotonic) -> None:
        self._module, self._clock = module, clock
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection[Any, Any] | None = None
        self._ready, self._paused, self._problem = False, 0.0, ""

    def __call__(self, left: Remaining) -> SearchResult:
        """Return the child's best plan of the tasks ``left``; raises SearchUnavailableError if it can't search now."""
        return SearchResult(**self.ask(left))

    def ask(self, message: DataclassInstance) -> dict[str, Any]:
        """Return the fields of the child's answer to a message, within ``LIMIT_SECONDS``. Raises SearchUnavailableError
        if the child is starting, busy, not installed, or failed."""
        if not self._lock.acquire(blocking=False):
            raise SearchUnavailableError("another search is running")
        try:
            return self._answer(self._connected(), message)
        except (OSError, EOFError, ValueError) as error:
            status = self._stop()
            why = f"it ended with status {status}" if isinstance(error, EOFError | ConnectionError) else str(error)
            self._pause(f"the plan search failed ({type(error).__name__}: {why})")
            raise SearchUnavailableError(self._problem) from error
        finally:
            self._lock.release()

    def _pause(self, problem: str) -> None:
        """Start no child for a while; callers are told of the problem until then."""
        self._paused, self._problem = self._clock() + PAUSE_SECONDS, problem

    def _answer(self, connection: Connection[Any, Any], message: DataclassInstance) -> dict[str, Any]:
        connection.send_bytes(encode(message))
        if not connection.poll(LIMIT_SECONDS):
            raise TimeoutError(f"no answer within {exact(LIMIT_SECONDS)} s")
        return decode(connection.recv_bytes())

    def _connected(self) -> Connection[Any, Any]:
        """Return the connection to a ready child, started if there is none; raise SearchUnavailableError if none is
        ready."""
        if self._connection is None:
            if self._clock() < self._paused:
                raise SearchUnavailableError(self._problem)
            module = self._module()
            if not module:
                self._pause(f"the plan search is not installed: {installed.command('worker')}")
                raise SearchUnavailableError(self._problem)
            ours, theirs = Pipe()
            with closing(theirs):
                command = [sys.executable, "-m", module, str(theirs.fileno())]
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True
                )
            atexit.register(self.close)
            self._connection = ours
        if not self._ready:
            if not self._connection.poll(0):
                raise SearchUnavailableError("the plan search is starting")
            self._connection.recv_bytes()
            self._ready = True
        return self._connection

    def _stop(self) -> int | None:
        """Stop the child process; return its exit status, None if there was none."""
        connection, process = self._connection, self._process
        self._connection, self._process, self._ready = None, None, False
        if connection is not None:
            connection.close()
        if process is None:
            return None
        try:
            return process.wait(CLOSING_SECONDS)  # without its connection it ends by itself
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def close(self) -> None:
        """Stop the child; the next call starts another."""
        atexit.unregister(self.close)
        with self._lock:
            self._stop()


# Remaining tasks of a queue as input of the search.


MOST_TASKS, MOST_EDGES, MOST_PLACES = 2_000, 20_000, 200_000  # beyond, a search of 0.1 s improves little


class UnplannableError(Exception):
    """No plan can be made of the remaining tasks; the message is the reason."""


class SearchInput(NamedTuple):
    """Input of a search, with the names of its N tasks and the indices of its M nodes."""

    remaining: Remaining
    names: list[str]
    nodes: list[int]


def rented_nodes(situation: QueueSituation) -> list[int]:
    """Return the indices of the nodes that are up or starting."""
    return [j for j, (status, _) in situation.state.nodes.items() if status in (UP, STARTING)]


def left_of(situation: QueueSituation, plan: QueuePlan | None) -> SearchInput:
    """Return the tasks that a search plans, with their nodes in the present ``plan``; None: there is no plan. Raises
    UnplannableError if there are too many for a search, or a task fits no rented node."""
    queue, ended = situation.queue, situation.state.ended
    _check_size(len(queue), 0, 0)  # before anything is made of them
    outputs = dict.fromkeys(p for inputs in queue.inputs for p, _ in inputs if p not in queue.row)
    running = situation.running.tolist()
    rows = running + [row for row in range(len(queue)) if queue.node[row] < 0]
    names = [*outputs, *(queue.names[row] for row in rows)]
    occupied = [*(ended[name][0] for name in outputs), *queue.node[running].tolist()]  # rented still, or gone
    nodes = list(dict.fromkeys([*rented_nodes(situation), *occupied]))
    _check_size(len(names), sum(map(len, queue.inputs)), len(nodes))
    column = {j: k for k, j in enumerate(nodes)}
    fixed = [column[j] for j in occupied]
    start, parents, data = _edges(situation, names, rows)
    order, planned = _so_far(names, len(fixed), plan, column)
    # Seconds from now until each of M nodes accepts tasks, [M]; 0: it does now
    startup, states = situation.layout.nodes.startup, situation.state.nodes
    since = [states[j][1] + float(startup[j]) if states.get(j, (UP, 0.0))[0] == STARTING else 0.0 for j in nodes]
    remaining = Remaining(
        parent_start=start,
        parents=parents,
        data=data,
        cost=_cost(situation, rows, len(outputs), fixed, nodes),
        processors=np.concatenate([np.zeros(len(outputs), np.int64), queue.processors[rows]]),
        end=np.concatenate([np.zeros(len(outputs)), situation.ends - situation.now]),
        node=np.array([*fixed, *planned], np.int64),
        order=np.array(order, np.int64),
        slots=situation.layout.nodes.processors[nodes],
        available=np.maximum(np.array(since, np.float64) - situation.now, 0.0),
        pace=1.0 / situation.layout.nodes.bandwidth[nodes],
    )
    return SearchInput(remaining, names, nodes)


def _check_size(tasks: int, edges: int, nodes: int) -> None:
    for count, most, what in (
        (tasks, MOST_TASKS, "tasks"),
        (edges, MOST_EDGES, "dependencies"),
        (tasks * nodes, MOST_PLACES, "pairs of task and node"),
    ):
        if count > most:
            raise UnplannableError(f"{count:,} {what} exceed the plan search's maximum of {most:,}")


def _so_far(
    names: list[str], fixed: int, plan: QueuePlan | None, column: dict[int, int]
) -> tuple[list[int], list[int]]:
    """Return the order of all tasks, and the planned node of each task that isn't fixed (−1: none). In the order the
    ``fixed`` tasks come first, then the plan's order, then unplanned tasks. ``column``: position of each node."""
    turns = plan.turns if plan else {}
    place = {name: k for k, name in enumerate(turns)}
    rest = sorted(range(fixed, len(names)), key=lambda k: place.get(names[k], len(place)))
    planned = [column.get(turns[name].node, -1) if name in turns else -1 for name in names[fixed:]]
    return [*range(fixed), *rest], planned


def _edges(situation: QueueSituation, names: list[str], rows: list[int]) -> tuple[Indices, Indices, Floats]:
    """Return the E edges from N tasks to waiting ones as compressed sparse rows: starts [N + 1], parents, bytes [E]."""
    index, queue = {name: k for k, name in enumerate(names)}, situation.queue
    ended = len(names) - len(rows)
    inside = [[(index[p], size) for p, size in queue.inputs[r]] if queue.node[r] < 0 else [] for r in rows]
    start = np.concatenate([np.zeros(ended + 1, np.int64), np.cumsum([len(one) for one in inside])])
    flat = [edge for one in inside for edge in one]
    return start, np.array([p for p, _ in flat], np.int64), np.array([size for _, size in flat], np.float64)


def _cost(situation: QueueSituation, rows: list[int], ended: int, fixed: list[int], nodes: list[int]) -> Floats:
    """Return the seconds of each of N tasks on each of M nodes, [N, M]; infinite where it can't run. Raises
    UnplannableError if a waiting task fits no rented node."""
    known, queue, up = situation.layout.nodes, situation.queue, set(rented_nodes(situation))
    fits = queue.processors[rows, None] <= known.processors[nodes]
    fits &= queue.memory[rows, None] <= known.memory[nodes]
    fits &= np.array([j in up for j in nodes], np.bool_)
    cost = np.full((ended + len(rows), len(nodes)), np.inf)
    cost[ended:] = np.where(fits, situation.expected[rows, None] / known.speed[nodes], np.inf)
    cost[: len(fixed)] = np.inf
    cost[np.arange(len(fixed)), fixed] = 0.0
    nowhere = np.flatnonzero(np.isinf(cost).all(axis=1))
    if len(nowhere):
        raise UnplannableError(f"{queue.names[rows[int(nowhere[0]) - ended]]} fits no rented node")
    return cost
