"""A decision as it is answered: msgspec structures on the hot path, their Pydantic twins in the schema.

Both encode to the same JSON; a test holds them together.
"""

from datetime import datetime
from typing import Literal

import msgspec
from pydantic import BaseModel, Field

from app.kinds.contract.decision import Drifts, Source


class EncodedReason(msgspec.Struct, frozen=True):
    """`DecisionReason`."""

    code: str
    text: str


class EncodedInterval(msgspec.Struct, frozen=True):
    """`PredictedMetric`."""

    mean: float
    low: float
    high: float
    level: float


class EncodedShadow(msgspec.Struct, frozen=True):
    """`ShadowStep`."""

    agent: int
    allocation: msgspec.Raw | None
    agrees: bool
    gain: float | None
    problem: str | None


class EncodedDecision(msgspec.Struct, frozen=True):
    """`Decision`, with parts that are encoded already."""

    run: str | None
    workload: str
    kind: str
    reported: int | None
    iteration: int
    allocation: msgspec.Raw
    delta: msgspec.Raw
    noop: bool
    source: str
    agent: int | None
    policy: str
    reason: EncodedReason
    predicted: dict[str, EncodedInterval]
    chances: dict[str, float]
    valid_for_iterations: int
    decided_at: str
    shadow: EncodedShadow | None = None


class DecisionReason(BaseModel):
    """Why: a stable code, and the same for people."""

    code: str = Field(examples=["deadline_at_risk"])
    text: str = Field(
        examples=["projected 1,912 s against a target of 1,800 s (12 % sure); 6 gpus bring it to 1,764 s (81 % sure)"],
    )


class PredictedMetric(BaseModel):
    """What a metric is expected to be in the next iteration, with an interval for the share `level` of cases."""

    mean: float
    low: float
    high: float
    level: float = Field(examples=[0.9])


class ShadowStep(BaseModel):
    """What another agent would have decided; it is written down, and changes nothing."""

    agent: int = Field(description="Version of the shadow.")
    allocation: dict[str, float] | None = Field(description="What it would allocate; null when it failed.")
    agrees: bool = Field(description="Whether it is the step that was decided.")
    gain: float | None = Field(
        description="Expected return of its step less that of the decided one under the domain model, each allocation "
        "then held: the regret of not having followed it."
    )
    problem: str | None = Field(description="What failed, if something did.")


class Decision(BaseModel):
    """The next resource step."""

    run: str | None = Field(description="The run; null when the state was given in full.")
    workload: str
    kind: Literal["iterative"]
    reported: int | None = Field(description="The last iteration that was reported; null before the first.")
    iteration: int = Field(description="The iteration that this allocation is for.")
    allocation: dict[str, float] = Field(description="What to allocate, by resource.", examples=[{"gpus": 6}])
    delta: dict[str, float] = Field(description="Change against the reported allocation.", examples=[{"gpus": 2}])
    noop: bool = Field(description="Whether nothing changes.")
    source: Source = Field(
        description="Who answered: the promoted agent, a heuristic in its stead, a guard that replaced the policy's "
        "step, or a fallback because something failed."
    )
    agent: int | None = Field(description="Version of the promoted agent, if there is one.")
    policy: str = Field(description="What the answering policy is called.", examples=["dueling_double_dqn"])
    reason: DecisionReason
    predicted: dict[str, PredictedMetric] = Field(description="The next iteration's metrics at this allocation.")
    chances: dict[str, float] = Field(
        default={},
        description="How likely each target is to be met at this allocation: a run's at its end, if the allocation is "
        "held; an iteration's in the next one. None before the first model, and of set points.",
        examples=[{"iteration_seconds": 0.97}],
    )
    valid_for_iterations: int = Field(description="For how many iterations it holds; 0 once the run is complete.")
    decided_at: datetime
    drift: Drifts = None
    shadow: ShadowStep | None = Field(default=None, description="The run's shadow, if it has one.")
