"""What decisions say where one numbered action is taken; a kind's own model adds ``kind`` and what is allocated."""

from pydantic import BaseModel, Field

from app.kinds.contract.decision import DecisionBase


class ShadowAction(BaseModel):
    """What another agent would have decided; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    action: int | None = Field(description="Action it would take; null if it failed.")
    agrees: bool = Field(description="Whether its action matches the one decided.")
    gain: float | None = Field(description="Always null: the value of other actions is unknown.")
    problem: str | None = Field(description="What failed, if anything.")


class NumberedDecision(DecisionBase):
    """The fields of every such decision."""

    action: int = Field(description="Number of the action, from 0.")
    shadow: ShadowAction | None = Field(default=None, description="Decision of the run's shadow, if any.")
