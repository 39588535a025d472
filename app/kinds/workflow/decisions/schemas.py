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


class Placement(BaseModel):
    """A task that is to start."""

    task: str
    node: str = Field(description="A type's name and a number from 0.", examples=["large-0"])
    start: float = Field(description="When: the report's `now`.")


class NodeSteps(BaseModel):
    """Nodes to order and to give back."""

    start: list[str]
    release: list[str]


class Scored(BaseModel):
    """A task and its score; the smallest is the most urgent."""

    task: str
    score: float


class BackfillWindow(BaseModel):
    """What waits, until when, and what may overtake it: tasks that are expected to end by then, and under `easy` those
    that need no more than the spare processors, or start on other nodes."""

    task: str = Field(description="The task that waits.")
    node: str | None = Field(description="Where it will start; null when no rented node can hold it.")
    until: float | None = Field(description="When, if running tasks end as expected; null when that is unknown.")
    spare_processors: int = Field(description="What it leaves free there.")
    overtook: list[str] = Field(description="Tasks that start before it now.")


class WorkflowPlan(BaseModel):
    """A searched plan for tasks that depend on each other, on the nodes that are rented."""

    followed: bool = Field(description="Whether it is followed; otherwise HEFT answers, which it could not better.")
    made: float = Field(description="When; a time of the reports.")
    seconds: float = Field(description="From then until the last task ends, as planned.")
    heft_seconds: float = Field(description="The same by HEFT.")
    search_seconds: float = Field(description="What the search took.")
    because: str = Field(
        description="Why it was made.", examples=["the first one", "t12 ended 40 s later than planned"]
    )
    tasks: int = Field(description="How many of its tasks have not ended.")


class QueueReason(BaseModel):
    """Why: a stable code, the same for people, and the numbers that it rests on."""

    code: str = Field(examples=["started"])
    text: str
    strategy: str = Field(description="Whose order was followed.", examples=["sjf"])
    backfilling: str = Field(description="The mechanism.", examples=["easy"])
    first: Scored | None = Field(default=None, description="The most urgent task.")
    runner_up: Scored | None = Field(default=None, description="The next one.")
    window: BackfillWindow | None = None
    plan: WorkflowPlan | None = Field(default=None, description="Of workflows, where an agent is wanted.")


class QueueShadow(BaseModel):
    """What another agent would have decided; it is written down, and changes nothing."""

    agent: int
    strategy: str | None
    placements: list[Placement]
    agrees: bool = Field(description="Whether the same tasks start on the same nodes.")
    gain: float | None = Field(description="Null: nothing tells at once what another start would have been worth.")
    problem: str | None


class ReportWarning(BaseModel):
    """What looks wrong in a report that was taken nevertheless, with the values that look so."""

    pointer: str
    message: str
    value: Any


class QueueDecision(BaseModel):
    """Which ready tasks start now, where, and which nodes to order or give back."""

    run: str | None
    workload: str
    kind: Literal["workflow"]
    reported: int | None = Field(description="The last report; null before the first.")
    iteration: int = Field(description="The number of the next report.")
    now: float | None = Field(description="The report's time.")
    placements: list[Placement]
    nodes: NodeSteps
    noop: bool = Field(description="Whether nothing starts, and no node is ordered or given back.")
    source: Source
    agent: int | None = Field(description="Version of the promoted agent, if there is one.")
    policy: str = Field(description="What the answering policy is called.", examples=["sjf+easy"])
    reason: QueueReason
    warnings: list[ReportWarning]
    valid_for_iterations: int = Field(description="Until the next report: 1.")
    decided_at: datetime
    drift: Drifts = None
    shadow: QueueShadow | None = None
    waiting: int | None = Field(default=None, description="Tasks that wait, after all this; null: not counted then.")
    running: int | None = Field(default=None, description="Tasks that run, those that start included.")
    busy_processors: int | None = Field(default=None, description="Processors that these have.")
