"""What crosses the API about domain models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.jobs.schemas import Priority

Seed = Annotated[int, Field(ge=0, le=2**31 - 1, description="Same seed, same samples: the same result.")]


class Shift(BaseModel):
    """How far things have drifted, so that what was measured before still tells of them."""

    model_config = ConfigDict(extra="forbid")

    factors: dict[str, Annotated[float, Field(gt=0, le=1e6)]] = Field(
        description="By stream, as a run's `drift` names it: what is measured now over what was measured before.",
        examples=[{"seconds.resnet18": 1.6}],
    )
    recent: list[str] = Field(default=[], description="Executions that were measured since; the others were before.")


class FitRequest(BaseModel):
    """What may be said about a fit; all of it is optional."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{}]})

    seed: Seed = 0
    drift: Shift | None = Field(
        default=None, description="Bring what older executions say to where it is now, as far as the kind can."
    )
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
