"""What crosses the API about jobs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
JobType = Literal["fit", "train", "trial", "evaluate"]
FINAL_STATES = ("succeeded", "failed", "cancelled")
LOWEST_PRIORITY = -10
Priority = Annotated[
    int,
    Field(
        ge=LOWEST_PRIORITY,
        le=10,
        description="A tenant's waiting jobs start in order of priority, highest first; the order among tenants "
        "ignores it.",
    ),
]


class JobRead(BaseModel):
    """A job."""

    id: str
    type: JobType
    workload: str = Field(description="Name of the workload.")
    state: JobState
    priority: Priority
    progress: float = Field(ge=0, le=1)
    eta_seconds: float | None = Field(description="Estimated seconds until it is done.")
    attempts: int = Field(
        description="Number of the present attempt, or of the last: above 1 if workers were lost; 0 before it starts."
    )
    error: dict[str, Any] | None = Field(description="Problem document of a failed job.")
    result: dict[str, Any] | None = Field(description="`{model: version}`, `{agent: version}` or `{evaluation: id}`.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    not_before: datetime | None = Field(description="When it resumes, if it waits for its next window.")
