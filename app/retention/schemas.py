"""API schemas of retention."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Days = Annotated[float | None, Field(gt=0, le=36_500, description="Null: for ever; left out: as the settings say.")]


class Retention(BaseModel):
    """How many days a workload's data is kept before it is archived and deleted.

    What is active, or what something active depends on, is never deleted.
    """

    model_config = ConfigDict(extra="forbid")

    iterations_days: Days = Field(None, description="Iterations, after the end of their run; the last one is kept.")
    runs_days: Days = Field(None, description="Runs with all their remaining data, after their end.")
    jobs_days: Days = Field(None, description="Jobs with their events and trials, after their end.")
    events_days: Days = Field(None, description="Events of jobs, after the job's end; the last one is kept.")
    evaluations_days: Days = Field(None, description="Evaluations.")
    artifacts_days: Days = Field(None, description="Superseded agents and models; the newest is kept.")


class RetentionRead(BaseModel):
    """How long a workload's data is kept."""

    workload: str
    given: Retention = Field(description="Values set for this workload.")
    effective: Retention = Field(description="The same, completed by the service's settings.")
