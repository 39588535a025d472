"""Schemas of reports, starts and decisions of kind `iterative`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from pydantic import BaseModel, Field

from app.kinds.contract.caps import Caps
from app.kinds.contract.engine import DecisionBase, Reason
from app.kinds.contract.inputs import SMALLEST_NUMBER
from app.kinds.contract.kind import RunStart
from app.kinds.fields import Finite, Part, Probability
from app.kinds.iterative.announced import MOST_UPCOMING
from app.kinds.iterative.contingencies import MOST, MOST_SEGMENTS
from app.kinds.iterative.requests import NotGranted, RequestedAllocation
from app.kinds.iterative.spec import Target


class DecisionReason(Reason):
    """Reason as a stable code and as text."""

    code: str = Field(examples=["deadline_at_risk"])
    text: str = Field(
        examples=["6 GPUs: finish at 29 min 24 s (81 %), remaining cost $12.00; 4 GPUs: 31 min 52 s; target 30 min"],
    )


class PredictedMetric(BaseModel):
    """Expected value of a metric, in its unit, in the next iteration, with an interval of probability `level`."""

    mean: float
    low: float
    high: float
    level: float = Field(examples=[0.9])


class ShadowStep(BaseModel):
    """Decision of a shadow agent for comparison: recorded, not applied; its gain is in units of return."""

    agent: int = Field(description="Version of the shadow.")
    allocation: dict[str, float] | None = Field(description="Allocation it would choose; null if it failed.")
    agrees: bool = Field(description="Whether its step equals the decided one.")
    gain: float | None = Field(
        description="Expected return of its step minus that of the decided one under the domain model, each allocation "
        "then held: the regret of not following it."
    )
    problem: str | None = Field(description="What failed, if anything.")


class Contingency(BaseModel):
    """A change within the next iteration, in case that it takes longer than expected."""

    after_seconds: float = Field(
        description="Seconds since the iteration began, the change before it included, after which to change the "
        "allocation if the iteration isn't over.",
        examples=[412.5],
    )
    allocation: dict[str, float] = Field(description="Allocation from then on, by resource.", examples=[{"gpus": 8}])
    reason: DecisionReason


class Decision(DecisionBase):
    """The allocation of the next iteration with its reason, predicted metrics in their units, and chances (0 to 1)."""

    reason: DecisionReason
    kind: Literal["iterative"]
    allocation: dict[str, float] = Field(description="Allocation by resource.", examples=[{"gpus": 6}])
    delta: dict[str, float] = Field(description="Change from the reported allocation.", examples=[{"gpus": 2}])
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
    contingencies: list[Contingency] = Field(
        default=[],
        max_length=MOST,
        description="What to do if the iteration isn't over after so many seconds, by ascending time: the launcher "
        "changes the allocation by itself, also while the service is away, and reports the `segments`. Offered where "
        "few long iterations are left and the change is expected to pay.",
    )
    shadow: ShadowStep | None = Field(default=None, description="Decision of the run's shadow, if any.")
    granted: NotGranted | None = Field(
        default=None,
        description="What is there, if something was requested and isn't; absent if all of it is.",
        exclude_if=lambda result: result is None,
    )


# Schema of reports.


LARGEST_BYTES = 1 << 20  # with as much announced as there may be; names take long to read
MOST_NAMES = 64
"""Most resources, metrics or features in a report; workloads have fewer."""
Numbers = Annotated[dict[str, float], Meta(max_length=MOST_NAMES)]


class UpcomingIteration(Part, frozen=True):
    """Features of an iteration that are known in advance."""

    features: Annotated[Numbers, Meta(description="All of the workload's features.", examples=[{"batch": 128}])]


class IterationSegment(Part, frozen=True):
    """A part of an iteration at one allocation."""

    allocation: Annotated[Numbers, Meta(description="Allocation of the segment, by resource.", examples=[{"gpus": 4}])]
    seconds: Annotated[
        float, Meta(ge=SMALLEST_NUMBER, description="Duration, with the change at its beginning.", examples=[12.5])
    ]


class IterationReport(Part, frozen=True, omit_defaults=False):
    """Allocation and measurements of one iteration."""

    allocation: Annotated[Numbers, Meta(examples=[{"gpus": 4}])]
    metrics: Annotated[Numbers, Meta(examples=[{"iteration_seconds": 31.5}])]
    features: Annotated[Numbers, Meta(examples=[{"batch": 128}])] = msgspec.field(default_factory=dict)
    upcoming: Annotated[
        Annotated[list[UpcomingIteration], Meta(max_length=MOST_UPCOMING)] | UnsetType | None,
        Meta(
            description="The iterations right after this one, in order, as far as known: at most the remaining ones. "
            "Replaces earlier announcements; an empty list withdraws them; if omitted, they stay.",
            examples=[[{"features": {"batch": 128}}, {"features": {"batch": 256}}]],
            extra_json_schema={"default": None},
        ),
    ] = UNSET
    segments: Annotated[
        Annotated[list[IterationSegment], Meta(max_length=MOST_SEGMENTS)] | UnsetType | None,
        Meta(
            description="The parts of an iteration whose allocation changed before its end, in order; the last one's "
            "is `allocation`, and their seconds add up to `iteration_seconds`. Omitted: it ran at `allocation`.",
            extra_json_schema={"default": []},
        ),
    ] = UNSET
    change_seconds: Annotated[
        Annotated[float, Meta(ge=0)] | UnsetType | None,
        Meta(
            description="Seconds of `iteration_seconds` in which the run stood still, or repeated what was lost, as "
            "its allocation was changed or it was started again: measured. Omitted: as many as the model expects.",
            examples=[12.5],
            extra_json_schema={"default": None},
        ),
    ] = UNSET
    requested: Annotated[
        RequestedAllocation | UnsetType | None,
        Meta(
            description="What was requested, if it isn't `allocation`, which is what is there. Omitted: nothing else "
            "was, or it is there.",
            extra_json_schema={"default": None},
        ),
    ] = UNSET
    kind: Annotated[Literal["iterative"], Meta(extra_json_schema={"default": "iterative"})] | UnsetType = UNSET


# Schema of starts.


Name = Annotated[str, Field(max_length=63)]


class IterationRunStart(RunStart):
    """Parameters of a new run of kind ``iterative``."""

    targets: dict[Name, Target] = Field(
        default={}, description="Targets of this run only, by metric; the workload's apply otherwise.", max_length=16
    )
    probabilities: dict[Name, Probability | None] = Field(
        default={},
        description="Required probabilities of meeting targets, for this run only, by metric; null: the weights "
        "decide. The workload's apply otherwise.",
        max_length=16,
    )
    first_iteration: int = Field(
        default=0,
        ge=0,
        le=2**31 - 1,
        description="First iteration to be reported, if not the workload's first: earlier ones are over and were not "
        "measured, or not by this run. Targets of the whole run apply to the remaining iterations.",
    )
    features: dict[Name, Finite] | None = Field(
        default=None, description="Features of the first iteration, if known: all of them.", max_length=8
    )
    caps: Caps | None = Field(
        default=None,
        description="Limits of this run: decisions are made within them, and `stop` before an iteration that would "
        "pass one.",
    )
    upcoming: list[UpcomingIteration] = Field(
        default=[], max_length=MOST_UPCOMING, description="The iterations after the first, in order, as in a report."
    )
