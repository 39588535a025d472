"""What a run of kind ``workflow`` reports: a queue, whole or as what has changed. Times are seconds of one clock.

A report is *whole* (it lists every task that waits or runs, and what has ended since the last one) or a *delta* (it
lists tasks that were submitted, started, ended or withdrawn since). A task is described when it is first named; after
that its id is enough.
"""

from typing import Annotated, Literal

from pydantic import Field

from app.kinds.fields import Finite, Moment, NonNegative, Positive, Strict

Id = Annotated[str, Field(min_length=1, max_length=255)]
NodeState = Literal["off", "starting", "up", "failed"]
LARGEST_REPORT = 100_000


class Parent(Strict):
    """A task that must have ended first."""

    task: Id
    bytes: NonNegative = Field(default=0.0, description="how much of its output is read")


class QueuedTask(Strict):
    """A task that waits. A task that ran and waits again (its node failed) is listed here too."""

    id: Id
    processors: Annotated[int, Field(ge=1, le=10_000_000)] | None = Field(
        default=None, description="needed when the task is named for the first time"
    )
    submit: Moment | None = Field(default=None, description="when it was submitted; null: now, or when it started")
    estimate: Positive | None = Field(default=None, description="seconds that its user asked for, at speed 1")
    memory_gb: NonNegative | None = None
    user: Annotated[str, Field(max_length=255)] | None = None
    deadline: Finite | None = Field(default=None, description="by when it should have ended")
    workflow: Annotated[str, Field(max_length=255)] | None = Field(
        default=None, description="the workflow that it belongs to"
    )
    parents: Annotated[tuple[Id | Parent, ...], Field(max_length=10_000)] = ()


class RunningTask(QueuedTask):
    """A task that runs; node and start are needed when it is first reported as running."""

    node: Id | None = Field(default=None, description="as placed: a type's name and a number from 0", examples=["a-0"])
    start: Moment | None = None


class FinishedTask(Strict):
    """A task that has ended; one that started since the last report says when and where, too."""

    id: Id
    end: Moment
    node: Id | None = None
    start: Moment | None = None


class NodeReport(Strict):
    """What has become of a node."""

    name: Id
    state: NodeState
    since: Moment | None = Field(default=None, description="when it was ordered, or is rented from; null: now")


class QueueReport(Strict):
    """A queue at a moment."""

    kind: Literal["workflow"] = "workflow"
    now: Moment
    delta: bool = Field(default=False, description="whether only what has changed is listed")
    queued: Annotated[tuple[QueuedTask, ...], Field(max_length=LARGEST_REPORT)] = ()
    running: Annotated[tuple[RunningTask, ...], Field(max_length=LARGEST_REPORT)] = ()
    finished: Annotated[tuple[FinishedTask, ...], Field(max_length=LARGEST_REPORT)] = ()
    withdrawn: Annotated[tuple[Id, ...], Field(max_length=LARGEST_REPORT)] = Field(
        default=(), description="tasks that were taken out of the queue; in a whole report, those left out are"
    )
    nodes: Annotated[tuple[NodeReport, ...], Field(max_length=LARGEST_REPORT)] | None = Field(
        default=None, description="nodes whose state has changed; in a whole report, those left out are off"
    )
