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
    """Reason as a stable code and as text."""

    code: str = Field(examples=["deadline_at_risk"])
    text: str = Field(
        examples=["projected 1,912 s against a target of 1,800 s (12 % sure); 6 gpus bring it to 1,764 s (81 % sure)"],
    )


class PredictedMetric(BaseModel):
    """Expected value of a metric in the next iteration, with an interval of probability `level`."""

    mean: float
    low: float
    high: float
    level: float = Field(examples=[0.9])


class ShadowStep(BaseModel):
    """What another agent would have decided; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    allocation: dict[str, float] | None = Field(description="Allocation it would choose; null if it failed.")
    agrees: bool = Field(description="Whether its step matches the one decided.")
    gain: float | None = Field(
        description="Expected return of its step minus that of the decided one under the domain model, each allocation "
        "then held: the regret of not following it."
    )
    problem: str | None = Field(description="What failed, if anything.")


class Decision(BaseModel):
    """The next resource step."""

    run: str | None = Field(description="The run; null if the state was given in full.")
    workload: str
    kind: Literal["iterative"]
    reported: int | None = Field(description="Last reported iteration; null before the first.")
    iteration: int = Field(description="Iteration that this allocation is for.")
    allocation: dict[str, float] = Field(description="Allocation by resource.", examples=[{"gpus": 6}])
    delta: dict[str, float] = Field(description="Change from the reported allocation.", examples=[{"gpus": 2}])
    noop: bool = Field(description="Whether nothing changes.")
    source: Source = Field(
        description="What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's "
        "step, or a fallback after a failure."
    )
    agent: int | None = Field(description="Version of the promoted agent, if any.")
    policy: str = Field(description="Name of the deciding policy.", examples=["dueling_double_dqn"])
    reason: DecisionReason
    predicted: dict[str, PredictedMetric] = Field(
        description="Predicted metrics of the next iteration at this allocation."
    )
    chances: dict[str, float] = Field(
        default={},
        description="Probability of meeting each target at this allocation: run targets by the end of the run if it is "
        "held (where iterations are known to differ: if the best allocation to hold follows it), iteration targets in "
        "the next iteration. None before the first model or for set points.",
        examples=[{"iteration_seconds": 0.97}],
    )
    valid_for_iterations: int = Field(description="Number of iterations it is valid for; 0 once the run is complete.")
    decided_at: datetime
    drift: Drifts = None
    shadow: ShadowStep | None = Field(default=None, description="Decision of the run's shadow, if any.")
