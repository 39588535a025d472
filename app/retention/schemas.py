"""What crosses the API about retention."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Days = Annotated[float | None, Field(gt=0, le=36_500, description="Null: for ever; left out: as the settings say.")]


class Retention(BaseModel):
    """For how many days what hangs on a workload is kept; then it is archived and deleted.

    Nothing is deleted that goes on, or that something live rests on, however old it is.
    """

    model_config = ConfigDict(extra="forbid")

    iterations_days: Days = Field(None, description="Iterations, after their run has ended; its last one stays.")
    runs_days: Days = Field(None, description="Runs with all that is left of them, after they have ended.")
    jobs_days: Days = Field(None, description="Jobs with their events and trials, after they have ended.")
    events_days: Days = Field(None, description="Events of jobs, after these have ended; the last one stays.")
    evaluations_days: Days = Field(None, description="Evaluations.")
    artifacts_days: Days = Field(None, description="Agents and models that others have superseded; the newest stays.")


class RetentionRead(BaseModel):
    """How long what hangs on a workload is kept."""

    workload: str
    given: Retention = Field(description="What was put for this workload.")
    effective: Retention = Field(description="The same, with the service's settings where nothing was put.")
