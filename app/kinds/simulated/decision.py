"""What decisions say where one numbered action is taken; a kind's own model adds ``kind`` and what is allocated."""

from pydantic import BaseModel, Field

from app.kinds.contract.decision import DecisionBase


class ShadowAction(BaseModel):
    """What another agent would have decided; it is written down, and changes nothing."""

    agent: int = Field(description="Version of the shadow.")
    action: int | None = Field(description="What it would do; null when it failed.")
    agrees: bool = Field(description="Whether it is what was decided.")
    gain: float | None = Field(description="Null: nothing tells at once what another action would have been worth.")
    problem: str | None = Field(description="What failed, if something did.")


class NumberedDecision(DecisionBase):
    """The fields of every such decision."""

    action: int = Field(description="Number of the action, from 0.")
    shadow: ShadowAction | None = Field(default=None, description="The run's shadow, if it has one.")
