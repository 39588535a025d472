"""Decisions of kind `cluster` on the wire."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.kinds.contract.engine import DecisionBase
from app.kinds.contract.kind import RunStart


class JobChange(BaseModel):
    """Change of one job, and why."""

    job: str
    before: int = Field(description="GPUs before this decision.")
    gpus: int = Field(description="GPUs from now on; 0: it waits.")
    nodes: dict[str, int] = Field(description="Its GPUs from now on, by node.")
    code: str = Field(description="`started`, `grown`, `shrunk`, `moved` or `preempted`.")
    text: str
    trades: dict[str, int] = Field(description="GPUs by the other job: gained from it, or lost to it.")
    seconds_left_before: float | None = Field(
        description="Expected time to completion on its previous GPUs; null without GPUs, or before its application "
        "was measured."
    )
    seconds_left: float | None = Field(description="The same on its GPUs from now on, including a restart.")
    seconds_left_low: float | None = Field(
        default=None,
        description="Lower bound of the time to completion, whatever it has meanwhile: with `seconds_left_high` a 90 % "
        "interval, by how far off predictions for other jobs of this run were; null until 19 have finished.",
    )
    seconds_left_high: float | None = Field(default=None, description="Upper bound.")
    seconds_wanted: float | None = Field(
        default=None, description="Time until it should be finished, by the targets of its member workload, if any."
    )
    ceiling: int | None = Field(
        default=None, description="New maximum of GPUs, since it has little left to gain; null: no new limit."
    )
    batch: int | None = Field(
        default=None,
        description="Samples per step, over all its GPUs, of the largest goodput; null unless it has `batch_maximum`.",
    )


class JobStart(BaseModel):
    """Expected start of a job that waits."""

    job: str
    seconds: float = Field(
        description="Expected time to its start: when running jobs, as they are expected to end, have left its minimum "
        "of GPUs after what the jobs before it take."
    )
    seconds_low: float | None = Field(
        default=None,
        description="Lower bound: with `seconds_high` a 90 % interval, by how far off predictions for other jobs of "
        "this run were; null until 19 that waited have started.",
    )
    seconds_high: float | None = Field(default=None, description="Upper bound.")


class ShadowRule(BaseModel):
    """What another agent would have done; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    rule: str | None = Field(description="Rule by which it would have assigned GPUs; null if it failed.")
    agrees: bool = Field(description="Whether every job would have had the same GPUs.")
    problem: str | None = Field(description="What failed, if anything.")


class ClusterDecision(DecisionBase):
    """GPUs and nodes of each job from now on; jobs not listed keep what they have."""

    kind: Literal["cluster"]
    at: float = Field(description="Time of the report, in seconds since the run's start.")
    changes: list[JobChange]
    starts: list[JobStart] = Field(
        default=[], description="Waiting jobs that start next, in order; at most 100, as far as their starts are known."
    )
    running: int = Field(description="Jobs that have GPUs.")
    waiting: int = Field(description="Jobs that have no GPUs.")
    free: int = Field(description="Unassigned GPUs.")
    wake_at: float | None = Field(description="Latest time for the next report; null if there are no jobs.")
    rule: str = Field(description="Rule that assigned the GPUs: the heuristic's, or `weighed`, by an agent.")
    shadow: ShadowRule | None = Field(default=None, description="Decision of the run's shadow, if any.")


class ClusterStart(RunStart):
    """Start a live run of a workload of kind ``cluster``."""
