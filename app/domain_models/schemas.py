"""What crosses the API about domain models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.schemas import Priority

Seed = Annotated[int, Field(ge=0, le=2**31 - 1, description="The same seed and samples give the same result.")]


class FitRequest(BaseModel):
    """Options of a fit; all are optional."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})

    seed: Seed = 0
    priority: Priority = 0


class ModelRead(BaseModel):
    """One version of a workload's domain model."""

    workload: str
    version: int = Field(description="Counts from 1.")
    spec_version: int = Field(description="Version of the spec that it was fitted under.")
    report: dict[str, Any] = Field(
        description="Family, candidates with their errors, error and interval coverage per metric, run effect, "
        "residual spread, cost of a change, seconds of one simulated iteration, and what could not be explained."
    )
    created_at: datetime
