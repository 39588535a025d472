"""What a run of kind ``workflow`` reports: a queue, whole or as what has changed. Times are seconds of one clock.

A report is *whole* (it lists every task that waits or runs, and what has ended since the last one) or a *delta* (it
lists tasks that were submitted, started, ended or withdrawn since). A task is described when it is first named; after
that its id is enough.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.kinds.fields import Finite, Moment, NonNegative, Positive, Strict
from app.kinds.workflow.spec import MAXIMUM_NODES

Id = Annotated[str, Field(min_length=1, max_length=255)]
NodeState = Literal["off", "starting", "up", "failed"]
MOST_TASKS = 5_000
"""That wait or run in a run at once, or that a list of a report names."""
MOST_NAMES = 300_000
"""Bytes of the ids of those that wait or run: a decision may name all of them."""
MOST_PARENTS, MOST_EDGES = 10_000, 100_000
"""Of a task, and of all tasks of a report."""


class Parent(Strict):
    """A task that must end first."""

    task: Id
    bytes: NonNegative = Field(default=0.0, description="size of the output that is read")


class QueuedTask(Strict):
    """A waiting task, or one that waits again because its node failed."""

    id: Id
    processors: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None, description="required when the task is first named"
    )
    submit: Moment | None = Field(default=None, description="submission time; null: now, or its start")
    estimate: Positive | None = Field(default=None, description="seconds requested by its user, at speed 1")
    memory_gb: NonNegative | None = None
    user: Annotated[str, Field(max_length=255)] | None = None
    deadline: Finite | None = Field(default=None, description="time by which it should have ended")
    workflow: Annotated[str, Field(max_length=255)] | None = Field(default=None, description="workflow it belongs to")
    parents: Annotated[tuple[Id | Parent, ...], Field(max_length=MOST_PARENTS)] = ()


class RunningTask(QueuedTask):
    """A running task; node and start are required when it is first reported as running."""

    node: Id | None = Field(default=None, description="as placed: node type and index, starting at 0", examples=["a-0"])
    start: Moment | None = None


class FinishedTask(Strict):
    """A finished task; if it started since the last report, with start and node."""

    id: Id
    end: Moment
    node: Id | None = None
    start: Moment | None = None


class NodeReport(Strict):
    """A change of a node's state."""

    name: Id
    state: NodeState
    since: Moment | None = Field(default=None, description="when it was ordered or rented; null: now")


class QueueReport(Strict):
    """State of a queue at one moment."""

    kind: Literal["workflow"] = "workflow"
    now: Moment
    delta: bool = Field(default=False, description="whether only changes are listed")
    queued: Annotated[tuple[QueuedTask, ...], Field(max_length=MOST_TASKS)] = ()
    running: Annotated[tuple[RunningTask, ...], Field(max_length=MOST_TASKS)] = ()
    finished: Annotated[tuple[FinishedTask, ...], Field(max_length=MOST_TASKS)] = ()
    withdrawn: Annotated[tuple[Id, ...], Field(max_length=MOST_TASKS)] = Field(
        default=(), description="tasks removed from the queue; in a full report, tasks not listed are removed too"
    )
    nodes: Annotated[tuple[NodeReport, ...], Field(max_length=MAXIMUM_NODES)] | None = Field(
        default=None, description="nodes whose state has changed; in a full report, nodes not listed are off"
    )
