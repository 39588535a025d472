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
    wake_at: float | None
    waiting: dict[str, int]
    quality: dict[str, float]
    expected: dict[str, dict[str, list[float]]] | None = None
    shadow: EncodedShadow | None = None


class BatchStart(BaseModel):
    """A batch that is to be started now: the user's oldest requests."""

    server: str = Field(description="A class and a number from 0.", examples=["cpu-0"])
    user: str
    variant: str
    batch: int = Field(description="The size that was chosen; the smallest takes fewer requests, too.")
    requests: list[str] = Field(description="By name; those that came without have a number, as in `#17`.")
    expected_seconds: float | None = Field(description="Loading of the variant included; null without a domain model.")


class Drop(BaseModel):
    """Requests that are to be given up."""

    user: str
    requests: list[str]
    why: str


class ShadowStarts(BaseModel):
    """What another agent would have started; it is written down, and changes nothing."""

    agent: int = Field(description="Version of the shadow.")
    start: list[BatchStart]
    agrees: bool = Field(description="Whether it would have started and turned what was decided.")
    gain: float | None = Field(description="Null: nothing tells at once what other starts would have been worth.")
    problem: str | None = Field(description="What failed, if something did.")


class InferenceDecision(DecisionBase):
    """All that is to be started now, on which servers, what is given up, and how many servers are to be on."""

    kind: Literal["inference"]
    at: float = Field(description="The moment of the report, in seconds since the run's start.")
    start: list[BatchStart]
    drop: list[Drop]
    servers: dict[str, int] = Field(description="How many of each class are to be on; those that start are.")
    wake_at: float | None = Field(description="When to report again at the latest; null: at the next event.")
    waiting: dict[str, int] = Field(description="Requests of each user that wait, after all this.")
    quality: dict[str, float] = Field(description="Mean response quality of each user lately; 1 before an answer.")
    expected: dict[str, dict[str, list[float]]] | None = Field(
        default=None,
        description="Seconds that batches are expected to take, by class of servers, variant and size, for a client "
        "that decides by itself: in the first decision of a carried run, where there is a domain model.",
    )
    shadow: ShadowStarts | None = Field(default=None, description="The run's shadow, if it has one.")


class InferenceStart(RunStart):
    """Start a live run of a workload of kind ``inference``."""

    carried: bool = Field(
        default=False,
        description="Whether the client decides by itself, with the policy that it has loaded, and reports what it "
        "started: the run's decisions then start nothing.",
    )
