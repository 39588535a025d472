"""A decision as it is answered."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.kinds.contract.decision import DecisionBase
from app.kinds.contract.kind import RunStart


class JobChange(BaseModel):
    """What becomes of one job, and why."""

    job: str
    before: int = Field(description="GPUs that it had.")
    gpus: int = Field(description="GPUs that it has from now on; 0: it waits.")
    nodes: dict[str, int] = Field(description="Those GPUs by node.")
    code: str = Field(description="`started`, `grown`, `shrunk`, `moved` or `preempted`.")
    text: str
    trades: dict[str, int] = Field(
        description="GPUs by the other job: that it has more and others gave up, or has fewer and others took."
    )
    seconds_left_before: float | None = Field(
        description="Until it would be finished on what it had, by the domain model; null without one, or without GPUs."
    )
    seconds_left: float | None = Field(description="The same on what it has from now on, a restart included.")
    seconds_wanted: float | None = Field(
        default=None, description="Until it should be finished, by the targets of the member it is a run of, if any."
    )
    ceiling: int | None = Field(
        default=None, description="GPUs at most from now on, since it has little left to gain; null: no limit is new."
    )


class ShadowRule(BaseModel):
    """What another agent would have done; it is written down, and changes nothing."""

    agent: int = Field(description="Version of the shadow.")
    rule: str | None = Field(description="By which it would have given GPUs; null: it failed.")
    agrees: bool = Field(description="Whether every job would have had the same GPUs.")
    problem: str | None = Field(description="What failed, if something did.")


class ClusterDecision(DecisionBase):
    """Who gets how many GPUs, and on which nodes, from now on; jobs that aren't named keep what they have."""

    kind: Literal["cluster"]
    at: float = Field(description="The moment of the report, in seconds since the run's start.")
    changes: list[JobChange]
    running: int = Field(description="Jobs that have GPUs.")
    waiting: int = Field(description="Jobs that have none.")
    free: int = Field(description="GPUs that nobody has.")
    wake_at: float | None = Field(description="When to report again at the latest; null: no job is there.")
    rule: str = Field(description="By which GPUs were given: the heuristic's, or `weighed`, by an agent.")
    shadow: ShadowRule | None = Field(default=None, description="The run's shadow, if it has one.")


class ClusterStart(RunStart):
    """Start a live run of a workload of kind ``cluster``."""
