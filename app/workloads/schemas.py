"""What crosses the API about workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from app.charts import text
from app.kinds.registry import AnySpec


class WorkloadRead(BaseModel):
    """A registered workload."""

    id: str = Field(examples=["0f6ed0f0b7c14f1db3ad3a4f0b0a5f10"])
    name: str = Field(examples=["resnet18"])
    kind: str
    spec: AnySpec = Field(description="The current spec, with defaults filled in.")
    spec_version: int = Field(description="Starts at 1; incremented by every PATCH that changes something.")
    champion: int | None = Field(description="Version of the agent that serves the default role; null: a heuristic.")
    champions: dict[str, int] = Field(
        description="Versions of the serving agents, by role; a role not listed is served by a heuristic."
    )
    revision: int = Field(description="Grows with every change that affects the workload's decisions.")
    currency: str = Field(default_factory=text.currency, description="Currency of all prices: a sign or a code.")
    created_at: datetime


class WorkloadListed(WorkloadRead):
    """A registered workload in a list, even if it can't be read."""

    spec: AnySpec | dict[str, Any] = Field(description="The current spec; if it can't be read, as stored.")
    problem: str | None = Field(
        default=None, description="Why the spec can't be read, e.g. its kind isn't installed; null if it can."
    )
