"""What crosses the API about runs."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.decisions.answers import AnyDecision, AnyReport
from app.kinds.fields import Finite, Positive
from app.kinds.iterative.decisions.report import EncodedReport, IterationReport

__all__ = ["EncodedReport", "IterationRead", "IterationReport", "RunPatch", "RunRead", "RunStart", "RunStarted"]

RunState = Literal["running", "finished", "failed"]
Name = Annotated[str, Field(max_length=63)]


class RunStart(BaseModel):
    """Start a live run of a workload."""

    model_config = ConfigDict(extra="forbid")

    workload: Annotated[str, Field(min_length=1, max_length=63, description="Name of the workload.")]
    targets: dict[Name, Positive] = Field(
        default={}, description="Targets of this run alone, by metric; the workload's hold for the rest.", max_length=16
    )
    features: dict[Name, Finite] | None = Field(
        default=None, description="Features of the first iteration, if they are known: all of them.", max_length=8
    )
    shadow: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = Field(
        default=None,
        description="Version of an agent that is asked beside the one that answers: its steps are written down with "
        "each decision, and change nothing.",
    )


class RunStarted(BaseModel):
    """A run that has begun, with its first decision."""

    id: str
    workload: str
    agent: int | None = Field(description="Version of the agent that answers; null for a heuristic.")
    decision: AnyDecision


class RunRead(BaseModel):
    """A run."""

    id: str
    workload: str
    state: RunState
    spec_version: int = Field(description="Version of the workload's spec when the run started.")
    agent: int | None = Field(description="Version of the agent when the run started.")
    shadow: int | None = Field(default=None, description="Version of the agent that is asked beside it.")
    targets: dict[str, float]
    iterations: int = Field(description="How many iterations are reported; the number of the next one.")
    decision: AnyDecision = Field(description="The last decision.")
    created_at: datetime
    finished_at: datetime | None


class RunPatch(BaseModel):
    """End a run."""

    model_config = ConfigDict(extra="forbid")

    state: Literal["finished", "failed"]


class IterationRead(BaseModel):
    """A reported iteration and what it was answered with."""

    iteration: int
    report: AnyReport
    decision: AnyDecision
    reported_at: datetime
