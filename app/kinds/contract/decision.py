"""What the decisions of all kinds say; a kind's own model adds what is allocated, and its discriminator ``kind``."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

Source = Literal["agent", "heuristic", "guard", "fallback"]


class Reason(BaseModel):
    """Why: a stable code, and the same for people."""

    code: str
    text: str


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
