"""A plan as a run keeps it, and what becomes of it with every report. Seconds are those of the reports' clock."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any, NamedTuple, Protocol


class Ended(Protocol):
    """A finished task, as reported."""

    @property
    def id(self) -> str:
        """Its name."""
        ...

    @property
    def end(self) -> float:
        """When, seconds."""
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
