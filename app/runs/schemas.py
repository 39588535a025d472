"""What crosses the API about runs."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.decision import DriftNotice
from app.kinds.contract.run_outcome import RunOutcome
from app.kinds.registry import AnyDecision, AnyReport

RunState = Literal["running", "finished", "failed", "cancelled"]
LONGEST_REASON = 500


class WorkloadOnly(BaseModel):
    """Of a body that starts a run: whose. The rest is read as the workload's kind has it."""

    workload: str = Field(min_length=1, max_length=63)


class RunStarted(BaseModel):
    """A started run, with its first decision."""

    id: str
    workload: str
    agent: int | None = Field(description="Version of the agent that serves; null: a heuristic.")
    decision: AnyDecision
    token: str | None = Field(
        default=None,
        description="The run's own token, sent as `Authorization: Bearer …`, if one was requested.",
    )


class RunRead(BaseModel):
    """A run."""

    id: str
    workload: str
    state: RunState
    outcome: RunOutcome = Field(
        description="While it runs: `on_track`, `at_risk` of missing a target, or `stale` (no report for too long). "
        "Once ended: `met` or `missed` its targets, `failed`, `cancelled`, or `completed` without a target to judge by."
    )
    outcome_reason: str | None = Field(description="Why, in words; null if nothing was said.")
    spec_version: int = Field(description="Version of the workload's spec when the run started.")
    agent: int | None = Field(description="Version of the agent when the run started.")
    shadow: int | None = Field(default=None, description="Version of the agent consulted as a shadow.")
    start: dict[str, Any] = Field(description="Start parameters other than workload and shadow.")
    iterations: int = Field(
        description="Number of the next iteration: those reported, plus those before the run's first."
    )
    decision: AnyDecision = Field(description="The last decision.")
    drift: list[DriftNotice] = Field(description="Detected drift, oldest first.")
    created_at: datetime
    finished_at: datetime | None


class RunListed(RunRead):
    """A run in a list, even if its decision can't be read."""

    decision: AnyDecision | dict[str, Any]
    problem: str | None


class RunPatch(BaseModel):
    """End a run."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["finished", "failed", "cancelled"]
    reason: str | None = Field(
        default=None,
        max_length=LONGEST_REASON,
        description="Why it ends, for example an exception or an exit status; kept with the outcome.",
        examples=["exit status 1"],
    )


class IterationRead(BaseModel):
    """A reported iteration and its decision; what can't be read is returned as stored."""

    iteration: int
    report: AnyReport | dict[str, Any]
    decision: AnyDecision | dict[str, Any]
    reported_at: datetime
    problem: str | None = Field(
        default=None, description="Why the report or decision can't be read, e.g. its kind isn't installed."
    )
