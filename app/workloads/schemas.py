"""What crosses the API about workloads."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from app.kinds.registry import AnySpec


class WorkloadRead(BaseModel):
    """A registered workload."""

    id: str = Field(examples=["0f6ed0f0b7c14f1db3ad3a4f0b0a5f10"])
    name: str = Field(examples=["resnet18"])
    kind: str
    spec: AnySpec = Field(description="The spec as it stands, defaults filled in.")
    spec_version: int = Field(description="Counts from 1; every PATCH that changes something adds 1.")
    champion: int | None = Field(
        description="Version of the agent that answers, in the default role; null: a heuristic does."
    )
    champions: dict[str, int] = Field(
        description="Versions of the agents that answer, by role; in a role that is not here a heuristic does."
    )
    revision: int = Field(description="Grows with whatever changes the workload's decisions.")
    created_at: datetime


class WorkloadListed(WorkloadRead):
    """A registered workload in a list, where one that can't be read stands beside those that can."""

    spec: AnySpec | dict[str, Any] = Field(
        description="The spec as it stands; where it can't be read here, as it is stored."
    )
    problem: str | None = Field(
        default=None, description="Why the spec can't be read here, e.g. its kind isn't installed; null: it can."
    )
