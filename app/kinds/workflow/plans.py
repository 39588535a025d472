"""Plans of workflows: what is planned, how it is followed, and the message that another process plans by."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import numpy as safetensors_numpy

from app.kinds.tensors import read_header, written

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
WORTHWHILE = 0.01  # share of the time of HEFT's starts by which a plan must be shorter to be followed


@dataclass(frozen=True, eq=False)
class Remaining:
    """What is left of a queue, N tasks of which the first ``fixed`` run or have ended, on M nodes.

    Attributes:
        parent_start, parents: the edges, as of ``ranks.graph``, [N + 1] and [E].
        data: bytes along each edge, [E].
        cost: seconds of each task on each node, infinite where it may not run; of fixed ones 0 on their own, [N, M].
        processors: of each task; 0 of those that have ended, [N].
        end: seconds, of fixed tasks, [fixed].
        node: where fixed tasks run or ran, and the plan so far has the others (−1: it doesn't have them), [N].
        order: tasks in the order of the plan so far, fixed ones first; those that it doesn't have come last, [N].
        slots: processors of each node, [M].
        available: seconds, from which a node takes tasks, [M].
        pace: seconds that a byte takes to or from another node, [M].
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
        """How many tasks run or have ended."""
        return len(self.end)


@dataclass(frozen=True, eq=False)
class Found:
    """A searched plan, or what HEFT will do where the search can't better that.

    Attributes:
        order: all tasks, every one after its parents, fixed ones first, [N].
        node: where each runs, [N].
        start, end: seconds, [N].
        heft: seconds until the last end by HEFT's own plan.
        base: the same if tasks are started by HEFT as they get ready.
        better: whether it is a plan, shorter than ``base`` by more than ``WORTHWHILE``.
        took: seconds of the search.
    """

    order: Indices
    node: Indices
    start: Floats
    end: Floats
    heft: float
    base: float
    better: bool
    took: float


def encoded(message: Remaining | Found) -> bytes:
    """A message to or from the search, as bytes."""
    arrays = {name: value for name, value in vars(message).items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in vars(message).items() if name not in arrays}
    return written(arrays, {"numbers": json.dumps(numbers)})


def decoded(data: bytes) -> dict[str, Any]:
    """The fields of what ``encoded`` wrote.

    Raises:
        ValueError: it is no such message.
    """
    numbers: dict[str, float] = json.loads(read_header(data)["numbers"])
    return {**safetensors_numpy.load(data), **numbers}


# A plan as a run keeps it, and what becomes of it with every report. Seconds are those of the reports' clock.


class Ended(Protocol):
    """A finished task, as reported."""

    @property
    def id(self) -> str:
        """The name of the task."""
        ...

    @property
    def end(self) -> float:
        """When it ended, in seconds."""
        ...


class Turn(NamedTuple):
    """On which node, by index, and from when until when a task is to run."""

    node: int
    start: float
    end: float


class QueuePlan(NamedTuple):
    """A searched plan; on each node tasks start in its order.

    Attributes:
        turns: of the tasks that have not ended, in the plan's order.
        nodes: indices of the nodes that it may use.
        made: when.
        length: seconds from then until the last task ends.
        heft: the same by HEFT, planned ahead or started as tasks get ready, whichever ends sooner.
        took: seconds of the search.
        followed: whether it is; otherwise HEFT answers, which the search could not better.
        because: why it was made.
        departed: of the tasks that have ended since, the one that did so furthest from its planned end, and by how many
            seconds later; empty before any has.
    """

    turns: dict[str, Turn]
    nodes: tuple[int, ...]
    made: float
    length: float
    heft: float
    took: float
    followed: bool
    because: str
    departed: tuple[str, float] | tuple[()] = ()


def reported(plan: QueuePlan | None, finished: Iterable[Ended], queue: Container[str]) -> QueuePlan | None:
    """A plan after a report of tasks that have ``finished``; ``queue`` are the names of those that wait or run."""
    if plan is None:
        return None
    late = [(task.id, task.end - plan.turns[task.id].end) for task in finished if task.id in plan.turns]
    departed = max([*late, *([plan.departed] if plan.departed else [])], key=lambda one: abs(one[1]), default=())
    turns = {name: turn for name, turn in plan.turns.items() if name in queue}
    return plan._replace(turns=turns, departed=departed) if turns else None


def pack(plan: QueuePlan | None) -> list[Any] | None:
    """A plan as plain lists, numbers and texts, for JSON."""
    return None if plan is None else [{name: list(turn) for name, turn in plan.turns.items()}, *plan[1:]]


def unpack(stored: list[Any] | None) -> QueuePlan | None:
    """The plan whose ``pack`` went through JSON."""
    if stored is None:
        return None
    turns, nodes, made, length, heft, took, followed, because, departed = stored
    columns = {name: Turn(*turn) for name, turn in turns.items()}
    return QueuePlan(columns, tuple(nodes), made, length, heft, took, followed, because, tuple(departed))
