"""What the decisions of all kinds say; a kind's own model adds what is allocated, and its discriminator ``kind``."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

Source = Literal["agent", "heuristic", "guard", "fallback"]


class Reason(BaseModel):
    """Reason as a stable code and as text."""

    code: str
    text: str


class DriftNotice(BaseModel):
    """A quantity that deviates from the domain model."""

    stream: str = Field(
        description="Name of the drifting quantity, as defined by the kind.", examples=["seconds.resnet18"]
    )
    direction: Literal["up", "down"]
    factor: float = Field(description="Measurements since it began over the domain model's expectation.")
    iteration: int = Field(description="Report that revealed it.")
    since: int = Field(description="Approximate iteration at which it began.")
    at: datetime
    statistic: float = Field(description="Statistic of the sequential test, which has reached the threshold.")
    threshold: float = Field(
        description="Divided by the number of streams: minimum mean number of reports between false alarms."
    )
    model: int | None = Field(description="Version of the domain model it deviates from.")
    text: str


Drifts = Annotated[
    list[DriftNotice] | None,
    Field(
        description="Drift detected by this report; returned once.",
        exclude_if=lambda found: found is None,
    ),
]


class DecisionBase(BaseModel):
    """The fields that the service itself, the client and the dashboard rely on."""

    run: str | None = Field(description="The run; null if the state was given in full.")
    workload: str
    reported: int | None = Field(description="Last reported iteration; null before the first.")
    iteration: int = Field(description="Iteration that this decision is for.")
    noop: bool = Field(description="Whether nothing changes.")
    source: Source = Field(
        description="What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's "
        "step, or a fallback after a failure."
    )
    agent: int | None = Field(description="Version of the promoted agent, if any.")
    policy: str = Field(description="Name of the deciding policy.", examples=["dueling_double_dqn"])
    reason: Reason
    valid_for_iterations: int = Field(description="Number of iterations it is valid for; 0 once the run is complete.")
    decided_at: datetime
    drift: Drifts = None


ADDED = ("drift",)
"""Fields of decisions that are the service's own: no engine gives them, and they stand at the end if at all."""
