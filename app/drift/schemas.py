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
    """How a workload responds to drift, which is detected in any case."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"respond": "retrain"}]})

    respond: Literal["off", "retrain"] = Field(
        default="off",
        description="`retrain`: fit a model to what runs have reported since, train an agent on it, run it as a "
        "shadow, promote it if it is as good, and roll it back if it underperforms.",
    )
    algorithm: Algorithm | None = Field(
        default=None, description="Training algorithm; null: the champion's, or `auto`."
    )
    budget: Annotated[int, Field(ge=1_000, le=10_000_000_000)] | None = Field(
        default=None, description="Environment steps of the training; null: the default of trainings."
    )
    seed: Seed = 0
    shadow_decisions: Annotated[int, Field(ge=1, le=100_000)] = Field(
        default=200, description="Shadow decisions required, without a failure, before the agent may be promoted."
    )
    window_reports: Annotated[int, Field(ge=4 * BLOCK, le=10 * BLOCK)] = Field(
        default=10 * BLOCK,
        description="Reports after the promotion over which the agent is compared with its predecessor.",
    )
    equivalence_margin: EquivalenceMargin = 0.01
    pause_seconds: Annotated[float, Field(ge=0, le=30 * 86_400)] = Field(
        default=3600.0, description="Time after a response in which further drift is ignored."
    )


class DriftStep(BaseModel):
    """One step of an adaptation."""

    at: datetime
    state: State = Field(description="State that this step leads to.")
    why: str
    figures: dict[str, Any]


class AdaptationRead(BaseModel):
    """The response to one drift."""

    id: str
    state: State
    run: str = Field(description="The run that detected it.")
    notice: DriftNotice
    job: str | None = Field(description="The most recent fit or training job.")
    model: int | None = Field(description="Version of the fitted domain model.")
    agent: int | None = Field(description="Version of the trained agent.")
    predecessor: int | None = Field(description="Version of the agent that served before; null: a heuristic.")
    steps: list[DriftStep]
    created_at: datetime
    finished_at: datetime | None


class DriftRead(BaseModel):
    """How a workload responds to drift, and its latest adaptations, newest first."""

    workload: str
    response: DriftResponse
    adaptations: list[AdaptationRead]
