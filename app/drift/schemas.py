"""What crosses the API about drifts."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.agents.algorithms import Algorithm
from app.domain_models.schemas import Seed
from app.drift.realised import BLOCK
from app.evaluations.schemas import EquivalenceMargin
from app.kinds.contract.decision import DriftNotice

State = Literal["fitting", "training", "shadow", "watched", "kept", "rolled_back", "rejected", "superseded", "failed"]


class DriftResponse(BaseModel):
    """How a workload answers drifts; they are noticed in any case."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"respond": "retrain"}]})

    respond: Literal["off", "retrain"] = Field(
        default="off",
        description="`retrain`: fit a model to what runs have reported since, train an agent on it, have it decide as "
        "a shadow, promote it if it is as good, and take it back if it disappoints.",
    )
    algorithm: Algorithm | None = Field(default=None, description="Of the training; null: the champion's, or `auto`.")
    budget: Annotated[int, Field(ge=1_000, le=10_000_000_000)] | None = Field(
        default=None, description="Environment steps of the training; null: as for any training."
    )
    seed: Seed = 0
    shadow_decisions: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="Decisions as a shadow, without a failure, before the agent may answer."
    )
    window_reports: Annotated[int, Field(ge=4 * BLOCK, le=10 * BLOCK)] = Field(
        default=10 * BLOCK, description="Reports after the promotion by which the agent is held against the one before."
    )
    equivalence_margin: EquivalenceMargin = 0.01
    pause_seconds: Annotated[float, Field(ge=0, le=30 * 86_400)] = Field(
        default=3600.0, description="After one drift was answered, others are left alone for so long."
    )


class DriftStep(BaseModel):
    """One step of an adaptation."""

    at: datetime
    state: State = Field(description="What it is in from then on.")
    why: str
    figures: dict[str, Any]


class AdaptationRead(BaseModel):
    """What was done about a drift."""

    id: str
    state: State
    run: str = Field(description="The run that noticed it.")
    notice: DriftNotice
    job: str | None = Field(description="The fit or the training that was queued last.")
    model: int | None = Field(description="Version of the domain model that was fitted.")
    agent: int | None = Field(description="Version of the agent that was trained.")
    predecessor: int | None = Field(description="Version of the agent that answered before; null for a heuristic.")
    steps: list[DriftStep]
    created_at: datetime
    finished_at: datetime | None


class DriftRead(BaseModel):
    """How a workload answers drifts, and what was done about the last ones, newest first."""

    workload: str
    response: DriftResponse
    adaptations: list[AdaptationRead]
