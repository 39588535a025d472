"""What crosses the API about runs."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.decision import DriftNotice
from app.kinds.registry import AnyDecision, AnyReport

RunState = Literal["running", "finished", "failed"]


class WorkloadOnly(BaseModel):
    """Of a body that starts a run: whose. The rest is read as the workload's kind has it."""

    workload: str = Field(min_length=1, max_length=63)


class RunStarted(BaseModel):
    """A run that has begun, with its first decision."""

    id: str
    workload: str
    agent: int | None = Field(description="Version of the agent that answers; null for a heuristic.")
    decision: AnyDecision
    token: str | None = Field(
        default=None,
        description="The run's own token, to be sent as `Authorization: Bearer …`, where one was asked for.",
    )


class RunRead(BaseModel):
    """A run."""

    id: str
    workload: str
    state: RunState
    spec_version: int = Field(description="Version of the workload's spec when the run started.")
    agent: int | None = Field(description="Version of the agent when the run started.")
    shadow: int | None = Field(default=None, description="Version of the agent that is consulted too.")
    start: dict[str, Any] = Field(description="What it was started with, beside workload and shadow.")
    iterations: int = Field(
        description="The number of the next iteration: how many are reported, with those before the run's first."
    )
    decision: AnyDecision = Field(description="The last decision.")
    drift: list[DriftNotice] = Field(description="What was found to have drifted, oldest first.")
    created_at: datetime
    finished_at: datetime | None


class RunListed(RunRead):
    """A run in a list, where one whose decision can't be read stands beside those whose can."""

    decision: AnyDecision | dict[str, Any]
    problem: str | None


class RunPatch(BaseModel):
    """End a run."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["finished", "failed"]


class IterationRead(BaseModel):
    """A reported iteration and what it was answered with; what can't be read here is given as it is stored."""

    iteration: int
    report: AnyReport | dict[str, Any]
    decision: AnyDecision | dict[str, Any]
    reported_at: datetime
    problem: str | None = Field(
        default=None, description="Why report or decision can't be read here, e.g. their kind isn't installed."
    )
