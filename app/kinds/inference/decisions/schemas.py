"""A decision as it is answered: msgspec structures, their Pydantic twins in the schema."""

from __future__ import annotations

from typing import Literal

import msgspec
from pydantic import BaseModel, Field

from app.kinds.contract.decision import DecisionBase
from app.kinds.contract.kind import RunStart


class EncodedReason(msgspec.Struct, frozen=True):
    """`Reason`."""

    code: str
    text: str


class EncodedStart(msgspec.Struct, frozen=True):
    """`BatchStart`."""

    server: str
    user: str
    variant: str
    batch: int
    requests: list[str]
    expected_seconds: float | None


class EncodedDrop(msgspec.Struct, frozen=True):
    """`Drop`."""

    user: str
    requests: list[str]
    why: str


class EncodedShadow(msgspec.Struct, frozen=True):
    """`ShadowStarts`."""

    agent: int
    start: list[EncodedStart]
    agrees: bool
    gain: float | None
    problem: str | None


class EncodedDecision(msgspec.Struct, frozen=True):
    """`InferenceDecision`."""

    run: str | None
    workload: str
    reported: int | None
    iteration: int
    noop: bool
    source: str
    agent: int | None
    policy: str
    reason: EncodedReason
    valid_for_iterations: int
    decided_at: str
    kind: str
    at: float
    start: list[EncodedStart]
    drop: list[EncodedDrop]
    servers: dict[str, int]
    turn_on: list[str]
    turn_off: list[str]
    wake_at: float | None
    waiting: dict[str, int]
    quality: dict[str, float]
    expected: dict[str, dict[str, list[float]]] | None = None
    shadow: EncodedShadow | None = None


class BatchStart(BaseModel):
    """A batch to start now, of the user's oldest requests."""

    server: str = Field(description="Class and index, starting at 0.", examples=["cpu-0"])
    user: str
    variant: str
    batch: int = Field(description="Chosen batch size; the smallest also takes fewer requests.")
    requests: list[str] = Field(description="Names; unnamed requests have a number, such as `#17`.")
    expected_seconds: float | None = Field(description="Includes loading the variant; null without a domain model.")


class Drop(BaseModel):
    """Requests to drop."""

    user: str
    requests: list[str]
    why: str


class ShadowStarts(BaseModel):
    """What another agent would have started; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    start: list[BatchStart]
    agrees: bool = Field(description="Whether its decision would have been the same.")
    gain: float | None = Field(description="Always null: the value of other starts is unknown.")
    problem: str | None = Field(description="What failed, if anything.")


class InferenceDecision(DecisionBase):
    """Batches to start now and on which servers, requests to drop, and how many servers to run."""

    kind: Literal["inference"]
    at: float = Field(description="Time of the report, in seconds since the run's start.")
    start: list[BatchStart]
    drop: list[Drop]
    servers: dict[str, int] = Field(description="Number of servers to run per class, including those starting.")
    turn_on: list[str] = Field(default=[], description="Servers to start now; at most 4 are turned on or off at once.")
    turn_off: list[str] = Field(default=[], description="Servers to stop now: idle ones, or such as are starting.")
    wake_at: float | None = Field(description="Latest time for the next report; null: at the next event.")
    waiting: dict[str, int] = Field(description="Waiting requests by user, after this decision.")
    quality: dict[str, float] = Field(description="Recent mean response quality by user; 1 before the first answer.")
    expected: dict[str, dict[str, list[float]]] | None = Field(
        default=None,
        description="Expected seconds per batch, by server class, variant and size, for clients that decide by "
        "themselves: in the first decision of a carried run, if there is a domain model.",
    )
    shadow: ShadowStarts | None = Field(default=None, description="Decision of the run's shadow, if any.")


class InferenceStart(RunStart):
    """Start a live run of a workload of kind ``inference``."""

    carried: bool = Field(
        default=False,
        description="Whether the client decides by itself with the policy it has loaded and reports what it started; "
        "the run's decisions then start nothing.",
    )
