"""A decision for a queue as it is answered: msgspec structures, their Pydantic twins in the schema."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec
from pydantic import BaseModel, Field

from app.kinds.contract.decision import Drifts, Source


class EncodedPlacement(msgspec.Struct, frozen=True):
    """`Placement`."""

    task: str
    node: str
    start: float


class EncodedNodes(msgspec.Struct, frozen=True):
    """`NodeSteps`."""

    start: list[str]
    release: list[str]


class EncodedScored(msgspec.Struct, frozen=True):
    """`Scored`."""

    task: str
    score: float


class EncodedWindow(msgspec.Struct, frozen=True):
    """`BackfillWindow`."""

    task: str
    node: str | None
    until: float | None
    spare_processors: int
    overtook: list[str]


class EncodedPlan(msgspec.Struct, frozen=True):
    """`WorkflowPlan`."""

    followed: bool
    made: float
    seconds: float
    heft_seconds: float
    search_seconds: float
    because: str
    tasks: int


class EncodedQueueReason(msgspec.Struct, frozen=True):
    """`QueueReason`."""

    code: str
    text: str
    strategy: str
    backfilling: str
    first: EncodedScored | None = None
    runner_up: EncodedScored | None = None
    window: EncodedWindow | None = None
    plan: EncodedPlan | None = None


class EncodedQueueShadow(msgspec.Struct, frozen=True):
    """`QueueShadow`."""

    agent: int
    strategy: str | None
    placements: list[EncodedPlacement]
    agrees: bool
    gain: float | None
    problem: str | None


class EncodedWarning(msgspec.Struct, frozen=True):
    """`ReportWarning`."""

    pointer: str
    message: str
    value: Any


class EncodedQueueDecision(msgspec.Struct, frozen=True):
    """`QueueDecision`."""

    run: str | None
    workload: str
    kind: str
    reported: int | None
    iteration: int
    now: float | None
    placements: list[EncodedPlacement]
    nodes: EncodedNodes
    noop: bool
    source: str
    agent: int | None
    policy: str
    reason: EncodedQueueReason
    warnings: list[EncodedWarning]
    valid_for_iterations: int
    decided_at: str
    shadow: EncodedQueueShadow | None = None
    waiting: int = 0
    running: int = 0
    busy_processors: int = 0
    wake_at: float | None = None


class Placement(BaseModel):
    """A task to start."""

    task: str
    node: str = Field(description="Node type and index, starting at 0.", examples=["large-0"])
    start: float = Field(description="Start time: the report's `now`.")


class NodeSteps(BaseModel):
    """Nodes to order and to release."""

    start: list[str]
    release: list[str]


class Scored(BaseModel):
    """A task and its score; the lowest is the most urgent."""

    task: str
    score: float


class BackfillWindow(BaseModel):
    """The waiting task, when it will start, and what may overtake it: tasks expected to end by then, and under `easy`
    those that need no more than the spare processors, or start on other nodes."""

    task: str = Field(description="The waiting task.")
    node: str | None = Field(description="Node it will start on; null if no rented node can hold it.")
    until: float | None = Field(description="Start time if running tasks end as expected; null if unknown.")
    spare_processors: int = Field(description="Processors it leaves free on that node.")
    overtook: list[str] = Field(description="Tasks that start ahead of it now.")


class WorkflowPlan(BaseModel):
    """A plan searched for tasks that depend on each other, on the rented nodes."""

    followed: bool = Field(description="Whether it is followed; otherwise it does not improve on HEFT, which decides.")
    made: float = Field(description="When it was made, on the clock of the reports.")
    seconds: float = Field(description="Planned time from then until the last task ends.")
    heft_seconds: float = Field(description="The same for HEFT.")
    search_seconds: float = Field(description="Duration of the search.")
    because: str = Field(
        description="Reason for making it.", examples=["the first one", "t12 ended 40 s later than planned"]
    )
    tasks: int = Field(description="Number of its tasks that have not ended.")


class QueueReason(BaseModel):
    """Reason as a stable code and as text, with the figures behind it."""

    code: str = Field(examples=["started"])
    text: str
    strategy: str = Field(description="Strategy whose order was followed.", examples=["sjf"])
    backfilling: str = Field(description="Backfilling mechanism.", examples=["easy"])
    first: Scored | None = Field(default=None, description="The most urgent task.")
    runner_up: Scored | None = Field(default=None, description="The next most urgent task.")
    window: BackfillWindow | None = None
    plan: WorkflowPlan | None = Field(default=None, description="For workflows, if an agent is requested.")


class QueueShadow(BaseModel):
    """What another agent would have decided; recorded, without effect."""

    agent: int
    strategy: str | None
    placements: list[Placement]
    agrees: bool = Field(description="Whether the same tasks start on the same nodes.")
    gain: float | None = Field(description="Always null: the value of other starts is unknown.")
    problem: str | None


class ReportWarning(BaseModel):
    """What looks wrong in an accepted report, with the values concerned."""

    pointer: str
    message: str
    value: Any


class QueueDecision(BaseModel):
    """Ready tasks to start now and where, and nodes to order or release."""

    run: str | None
    workload: str
    kind: Literal["workflow"]
    reported: int | None = Field(description="Last report; null before the first.")
    iteration: int = Field(description="The number of the next report.")
    now: float | None = Field(description="Time of the report.")
    placements: list[Placement]
    nodes: NodeSteps
    noop: bool = Field(description="Whether nothing starts and no node is ordered or released.")
    source: Source
    agent: int | None = Field(description="Version of the promoted agent, if any.")
    policy: str = Field(description="Name of the deciding policy.", examples=["sjf+easy"])
    reason: QueueReason
    warnings: list[ReportWarning]
    valid_for_iterations: int = Field(description="Always 1: until the next report.")
    decided_at: datetime
    drift: Drifts = None
    shadow: QueueShadow | None = None
    waiting: int | None = Field(default=None, description="Waiting tasks after this decision; null if not counted.")
    running: int | None = Field(default=None, description="Running tasks, including those that start.")
    busy_processors: int | None = Field(default=None, description="Processors used by running tasks.")
    wake_at: float | None = Field(
        default=None,
        description="Latest time for the next report: a task starts then, unless one ends before; null: at the next "
        "event.",
    )
