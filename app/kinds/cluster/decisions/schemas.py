"""A decision as it is answered."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from app.kinds.contract.decision import DecisionBase


class JobChange(BaseModel):
    """What becomes of one job, and why."""

    job: str
    before: int = Field(description="GPUs that it had.")
    gpus: int = Field(description="GPUs that it has from now on; 0: it waits.")
    nodes: dict[str, int] = Field(description="Those GPUs by node.")
    code: str = Field(description="`started`, `grown`, `shrunk`, `moved` or `preempted`.")
    text: str


class ClusterDecision(DecisionBase):
    """Who gets how many GPUs, and on which nodes, from now on; jobs that aren't named keep what they have."""

    kind: Literal["cluster"]
    at: float = Field(description="The moment of the report, in seconds since the run's start.")
    changes: list[JobChange]
    running: int = Field(description="Jobs that have GPUs.")
    waiting: int = Field(description="Jobs that have none.")
    free: int = Field(description="GPUs that nobody has.")
    wake_at: float | None = Field(description="When to report again at the latest; null: no job is there.")
