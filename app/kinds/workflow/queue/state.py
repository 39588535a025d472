"""A run's state: the queue as its reports so far tell it. It never changes in place."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kinds.workflow.layout import Layout
from app.kinds.workflow.plans import plan as plans
from app.kinds.workflow.plans.plan import QueuePlan
from app.kinds.workflow.run_times import Finished, blank

Floats = NDArray[np.float64]
Inputs = tuple[tuple[str, float], ...]

WAITING = -1
STARTING, UP, FAILED = range(3)
NODE_STATES = {"starting": STARTING, "up": UP, "failed": FAILED}
MOST_USERS = 2_000


class Queue:
    """N tasks that wait or run, in the order in which they were reported first.

    Attributes:
        names: [N].
        submit, estimate, deadline, start: seconds, [N]; not a number where unknown (``start``: while it waits).
        memory: bytes; 0 where unknown, [N].
        processors: [N].
        node: index of the node that it runs on, ``WAITING`` while it waits, [N].
        users, groups: names; empty where unknown, [N].
        inputs: parents and the bytes that are read of each, [N].
    """

    def __init__(self, columns: dict[str, Any]) -> None:
        self.names: list[str] = columns["names"]
        self.submit = np.array(columns["submit"], np.float64)
        self.estimate = np.array(columns["estimate"], np.float64)
        self.deadline = np.array(columns["deadline"], np.float64)
        self.start = np.array(columns["start"], np.float64)
        self.memory = np.array(columns["memory"], np.float64)
        self.processors = np.array(columns["processors"], np.int64)
        self.node = np.array(columns["node"], np.int64)
        self.users: list[str] = columns["users"]
        self.groups: list[str] = columns["groups"]
        self.inputs: list[Inputs] = columns["inputs"]

    def __len__(self) -> int:
        """How many tasks wait or run."""
        return len(self.names)

    @cached_property
    def row(self) -> dict[str, int]:
        """Where each task stands."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def linked(self) -> bool:
        """Whether any task has a parent."""
        return any(self.inputs)

    def columns(self) -> dict[str, Any]:
        """Its columns by name, as plain lists."""
        return {
            name: value if isinstance(value, list) else value.tolist()
            for name in COLUMNS
            for value in [getattr(self, name)]
        }


COLUMNS = (
    "names",
    "submit",
    "estimate",
    "deadline",
    "start",
    "memory",
    "processors",
    "node",
    "users",
    "groups",
    "inputs",
)


class Reserved(NamedTuple):
    """What was reserved, and by what it shows that reservations may move forward since.

    Attributes:
        done: how many tasks had finished.
        free: processors that the decision left free.
        starts: seconds, by task.
    """

    done: int
    free: int
    starts: dict[str, float]


NOTHING_RESERVED = Reserved(0, 0, {})


class State(NamedTuple):
    """A run between two reports.

    Attributes:
        now: of the last report; −1 before the first.
        before: of the one before it.
        queue: tasks that wait or run.
        ended: finished tasks that others may still depend on: the node that each ran on, and its workflow.
        nodes: state and moment of each node that isn't off, by index.
        head: a committed task, its earliest start and the processors spare then; empty where none is.
        history: the last tasks of each user, ``run_times.LAST`` at most, the newest last.
        done: how many tasks have finished.
        weight: of the regression of run times, see ``run_times.Regression``.
        covariance: of the same.
        plan: of a workflow, by which it goes on; None where none was searched for.
        reserved: starts that tasks hold.
    """

    now: float
    before: float
    queue: Queue
    ended: dict[str, tuple[int, str]]
    nodes: dict[int, tuple[int, float]]
    head: tuple[str, float, int] | tuple[()]
    history: dict[str, tuple[Finished, ...]]
    done: int
    weight: Floats
    covariance: Floats
    plan: QueuePlan | None = None
    reserved: Reserved = NOTHING_RESERVED


def begin(layout: Layout) -> State:
    """A run that has reported nothing: no task, and the nodes up that are always rented."""
    empty = Queue({name: [] for name in COLUMNS})
    return State(-1.0, -1.0, empty, {}, dict.fromkeys(layout.kept, (UP, 0.0)), (), {}, 0, *blank(0)[:2])


def pack(state: State) -> list[Any]:
    """A state as plain lists, numbers and texts, for JSON."""
    return [
        state.now,
        state.before,
        state.queue.columns(),
        {name: list(where) for name, where in state.ended.items()},
        [[node, *status] for node, status in state.nodes.items()],
        list(state.head),
        state.history,
        state.done,
        state.weight.tolist(),
        state.covariance.tolist(),
        plans.pack(state.plan),
        list(state.reserved),
    ]


def unpack(stored: list[Any]) -> State:
    """The state whose ``pack`` went through JSON; earlier releases stored less, from the regression on."""
    now, before, columns, ended, nodes, head, history, done, *more = stored
    weight, covariance = more[:2] or blank(0)[:2]
    columns = {**columns, "inputs": [tuple((name, size) for name, size in inputs) for inputs in columns["inputs"]]}
    return State(
        now,
        before,
        Queue(columns),
        {name: tuple(where) for name, where in ended.items()},
        {node: (status, since) for node, status, since in nodes},
        tuple(head),
        {user: tuple(map(_finished, tasks)) for user, tasks in history.items()},
        done,
        np.array(weight),
        np.array(covariance),
        plans.unpack(more[2]) if len(more) > 2 else None,
        Reserved(*more[3]) if len(more) > 3 else NOTHING_RESERVED,
    )


def _finished(stored: Any) -> Finished:
    if not isinstance(stored, list):
        return Finished(stored, np.nan, 1)
    seconds, estimate, processors = stored
    return Finished(seconds, np.nan if estimate is None else estimate, processors)
