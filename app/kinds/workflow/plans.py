"""Plans of workflows, and messages to and from the search process."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, write_tensors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
WORTHWHILE = 0.01  # share of the time of HEFT's starts by which a plan must be shorter to be followed


@dataclass(frozen=True, eq=False)
class Remaining:
    """Remaining tasks of a queue: N tasks, the first ``fixed`` of which run or have ended, E edges and M nodes. Times
    are seconds from now.

    Attributes:
        parent_start, parents: edges as compressed sparse rows, [N + 1] and [E].
        data: bytes along each edge, [E].
        cost: seconds of each task on each node, infinite where it can't run; 0 for fixed ones on their own node,
            [N, M].
        processors: processors of each task; 0 if it has ended, [N].
        end: expected end of each fixed task, [fixed].
        node: node of fixed tasks, and planned node of others (−1: not planned), [N].
        order: tasks in the present plan's order, fixed ones first, unplanned ones last, [N].
        slots: processors of each node, [M].
        available: seconds until a node accepts tasks, [M].
        pace: seconds per byte transferred to or from another node, [M].
    """

    parent_start: Indices
    parents: Indices
    data: Floats
    cost: Floats
    processors: Indices
    end: Floats
    node: Indices
    order: Indices
    slots: Indices
    available: Floats
    pace: Floats

    @property
    def fixed(self) -> int:
        """Number of tasks that run or have ended."""
        return len(self.end)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """Result of a search for N tasks: a plan, or HEFT's schedule if no better was found. Times are seconds from now.

    Attributes:
        order: all tasks in topological order, fixed ones first, [N].
        node: node of each task, [N].
        start, end: start and end of each task, [N].
        heft: end of the last task by HEFT's own plan.
        base: end of the last task if HEFT starts tasks as they become ready.
        better: whether the plan is shorter than ``base`` by more than ``WORTHWHILE``.
        took: seconds that the search took.
    """

    order: Indices
    node: Indices
    start: Floats
    end: Floats
    heft: float
    base: float
    better: bool
    took: float


def encode(message: DataclassInstance) -> bytes:
    """Serialise a message to or from the search process as safetensors."""
    arrays = {name: value for name, value in vars(message).items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in vars(message).items() if name not in arrays}
    return write_tensors(arrays, {"numbers": json.dumps(numbers)})


def decode(data: bytes) -> dict[str, Any]:
    """Return the fields of a message serialised by ``encode``.

    Raises:
        ValueError, KeyError, SafetensorError: ``data`` is no such message.
    """
    numbers: dict[str, float] = json.loads(read_header(data)["numbers"])
    return {**safetensors_numpy.load(data), **numbers}


# Plans as stored in runs, and their updates by reports. Seconds are those of the reports' clock.


class EndedTask(Protocol):
    """A finished task, as reported."""

    @property
    def id(self) -> str:
        """Name of the task."""
        ...

    @property
    def end(self) -> float:
        """Time at which it ended, seconds of the reports' clock."""
        ...


class Turn(NamedTuple):
    """Planned node (index), start and end of a task; times are seconds of the reports' clock."""

    node: int
    start: float
    end: float


class QueuePlan(NamedTuple):
    """A plan; each node starts its tasks in the plan's order. Times are seconds.

    Attributes:
        turns: node, start and end of each task that has not ended, in order, by name.
        nodes: indices of nodes it may use.
        created_at: time of its creation, on the reports' clock.
        length: seconds from then until the last task ends.
        heft: these seconds by HEFT, planned or started as tasks become ready, whichever ends earlier.
        took: seconds that the search took.
        followed: whether it is followed; otherwise HEFT decides, as the search found nothing better.
        because: reason for its creation.
        departed: name of the finished task that deviates most from its planned end, and seconds by which (positive:
            later); empty: none has finished.
    """

    turns: dict[str, Turn]
    nodes: tuple[int, ...]
    created_at: float
    length: float
    heft: float
    took: float
    followed: bool
    because: str
    departed: tuple[str, float] | tuple[()] = ()


def plan_after_report(plan: QueuePlan | None, finished: Iterable[EndedTask], queue: Container[str]) -> QueuePlan | None:
    """Return the plan after the tasks ``finished``; None if there was no plan, or no planned task is left in ``queue``.
    ``queue`` has the names of waiting and running tasks."""
    if plan is None:
        return None
    late = [(task.id, task.end - plan.turns[task.id].end) for task in finished if task.id in plan.turns]
    departed = max([*late, *([plan.departed] if plan.departed else [])], key=lambda one: abs(one[1]), default=())
    turns = {name: turn for name, turn in plan.turns.items() if name in queue}
    return plan._replace(turns=turns, departed=departed) if turns else None


def pack(plan: QueuePlan | None) -> list[Any] | None:
    """Return a plan as plain lists, numbers and texts, for JSON; None if there is no plan."""
    return None if plan is None else [{name: list(turn) for name, turn in plan.turns.items()}, *plan[1:]]


def unpack(stored: list[Any] | None) -> QueuePlan | None:
    """Return the plan from the lists that ``pack`` returned, after JSON; None if there is no plan."""
    if stored is None:
        return None
    turns, nodes, created_at, length, heft, took, followed, because, departed = stored
    columns = {name: Turn(*turn) for name, turn in turns.items()}
    return QueuePlan(columns, tuple(nodes), created_at, length, heft, took, followed, because, tuple(departed))
