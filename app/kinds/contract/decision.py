"""What the decisions of all kinds say; a kind's own model adds what is allocated, and its discriminator ``kind``."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

Source = Literal["agent", "heuristic", "guard", "fallback"]


class Reason(BaseModel):
    """Why: a stable code, and the same for people."""

    code: str
    text: str


class DriftNotice(BaseModel):
    """A quantity that has left what the domain model says of it."""

    stream: str = Field(description="What has drifted, as the kind calls it.", examples=["seconds.resnet18"])
    direction: Literal["up", "down"]
    factor: float = Field(description="What was measured since it began over what the domain model expects.")
    iteration: int = Field(description="The report that told it.")
    since: int = Field(description="The iteration at which it began, about.")
    at: datetime
    statistic: float = Field(description="Of the sequential test, which has reached the threshold.")
    threshold: float = Field(description="Over the number of streams, the fewest reports between two false alarms.")
    model: int | None = Field(description="Version of the domain model that was left.")
    text: str


Drifts = Annotated[
    list[DriftNotice] | None,
    Field(
        description="What was found to have drifted by the report that this answers; told once.",
        exclude_if=lambda found: found is None,
    ),
]


class DecisionBase(BaseModel):
    """The fields that the service itself, the client and the dashboard rely on."""

    run: str | None = Field(description="The run; null when the state was given in full.")
    workload: str
    reported: int | None = Field(description="The last iteration that was reported; null before the first.")
    iteration: int = Field(description="The iteration that this decision is for.")
    noop: bool = Field(description="Whether nothing changes.")
    source: Source = Field(
        description="Who answered: the promoted agent, a heuristic in its stead, a guard that replaced the policy's "
        "step, or a fallback because something failed."
    )
    agent: int | None = Field(description="Version of the promoted agent, if there is one.")
    policy: str = Field(description="What the answering policy is called.", examples=["dueling_double_dqn"])
    reason: Reason
    valid_for_iterations: int = Field(description="For how many iterations it holds; 0 once the run is complete.")
    decided_at: datetime
    drift: Drifts = None


ADDED = ("drift",)
"""Fields of decisions that are the service's own: no engine gives them, and they stand at the end if at all."""
