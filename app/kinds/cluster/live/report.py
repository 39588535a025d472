"""What a run of kind ``cluster`` reports: jobs that came, went on and left, and nodes. Times: seconds since it began.

Pydantic's models are the schema; their ``msgspec`` twins are read on the hot path, and equal reports are encoded to
equal bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta, Struct
from pydantic import Field, model_validator

from app.kinds.cluster.samples.content import LARGEST, MOST_BESIDE, SHORTEST
from app.kinds.contract.report_reading import decoded
from app.kinds.fields import (
    Amount,
    Finite,
    Moment,
    NonNegative,
    Number,
    Positive,
    PositiveNumber,
    Strict,
    Time,
)

LARGEST_REPORT = 10_000
Id = Annotated[str, Field(min_length=1, max_length=255)]
Gpus = Annotated[int, Field(ge=1, le=1_000_000)]
Samples = Annotated[int, Field(ge=1, le=10**9)]
Seconds = Annotated[float, Field(ge=SHORTEST, le=LARGEST, allow_inf_nan=False)]


class Submitted(Strict):
    """A job that came, or that is there."""

    job: Id
    gpus: Gpus = Field(description="that its owner asked for")
    queue: Id | None = Field(default=None, description="null: the least urgent")
    minimum: Gpus | None = Field(default=None, description="null: the spec's, or what was asked for where that is less")
    maximum: Gpus | None = Field(default=None, description="null: the spec's, or what was asked for where that is more")
    at: Moment | None = Field(default=None, description="when it came; null: the moment of the report")
    application: Id | None = Field(
        default=None, description="what it trains: jobs of one application are expected to be as fast as each other"
    )
    batch: Samples | None = Field(default=None, description="samples of a step, over all its GPUs")
    data: Positive | None = Field(default=None, description="size of its data, in one unit for all of an application")
    iterations: Positive | None = Field(
        default=None, description="until it is finished, epochs or updates, whatever it counts; null: unknown"
    )


class Progressed(Strict):
    """How far a job is, and what was measured of it on the way; that says on what, for the samples of the run."""

    job: Id
    iteration: NonNegative = Field(description="done so far; fewer than before: it went on from a checkpoint")
    loss: Finite | None = Field(default=None, description="the less the better; or `metric`")
    metric: Finite | None = Field(default=None, description="the more the better; or `loss`")
    seconds: Seconds | None = Field(default=None, description="of one step, as measured lately")
    computing: Positive | None = Field(default=None, description="of those, what is no waiting for other GPUs")
    gpus: Gpus | None = Field(default=None, description="on which that was measured; null: on what it has")
    nodes: Gpus | None = Field(default=None, description="over which these were spread; null: as few as they fill")
    beside: Annotated[tuple[Id, ...], Field(max_length=MOST_BESIDE)] = Field(
        default=(), description="applications of jobs that shared its nodes then; none: it had them alone"
    )
    batch: Samples | None = Field(default=None, description="samples of a step then, over all GPUs; null: as submitted")
    noise_scale: NonNegative | None = Field(default=None, description="of its gradient, in samples")

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.loss is not None and self.metric is not None:
            raise ValueError("loss must be null beside a metric: what a job learns is told as one of them")
        return self


class Ended(Strict):
    """A job that is finished, or has failed: it leaves."""

    job: Id
    state: Literal["finished", "failed"] = "finished"


class NodeChange(Strict):
    """How many GPUs a node has now; 0: it is lost."""

    node: Id = Field(description="A class and a number from 0.", examples=["a100-0"])
    gpus: Annotated[int, Field(ge=0, le=64)]


class ClusterReport(Strict):
    """What has happened since the last report, or, where it is ``whole``, all that is there."""

    kind: Literal["cluster"] = "cluster"
    at: Moment = Field(description="The moment of the report.")
    whole: bool = Field(
        default=False,
        description="Whether `submitted` and `nodes` tell all: jobs that are not in it have left, nodes that are not "
        "in it have the GPUs that the spec says. Jobs that were there keep what is known of them.",
    )
    submitted: Annotated[tuple[Submitted, ...], Field(max_length=LARGEST_REPORT)] = ()
    progressed: Annotated[tuple[Progressed, ...], Field(max_length=LARGEST_REPORT)] = ()
    ended: Annotated[tuple[Ended, ...], Field(max_length=LARGEST_REPORT)] = ()
    nodes: Annotated[tuple[NodeChange, ...], Field(max_length=LARGEST_REPORT)] = ()


Text = Annotated[str, Meta(min_length=1, max_length=255)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]


class EncodedSubmitted(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`Submitted`."""

    job: Text
    gpus: Count
    queue: Text | None = None
    minimum: Count | None = None
    maximum: Count | None = None
    at: Time | None = None
    application: Text | None = None
    batch: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    data: PositiveNumber | None = None
    iterations: PositiveNumber | None = None


class EncodedProgressed(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`Progressed`."""

    job: Text
    iteration: Amount
    loss: Number | None = None
    metric: Number | None = None
    seconds: Annotated[float, Meta(ge=SHORTEST, le=LARGEST)] | None = None
    computing: PositiveNumber | None = None
    gpus: Count | None = None
    nodes: Count | None = None
    beside: Annotated[tuple[Text, ...], Meta(max_length=MOST_BESIDE)] = ()
    batch: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    noise_scale: Amount | None = None

    def __post_init__(self) -> None:
        """Refuse what Pydantic's model refuses, which says why."""
        if self.loss is not None and self.metric is not None:
            raise ValueError("loss beside a metric")


class EncodedEnded(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """`Ended`."""

    job: Text
    state: Literal["finished", "failed"] = "finished"


class EncodedNode(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """`NodeChange`."""

    node: Text
    gpus: Annotated[int, Meta(ge=0, le=64)]


class EncodedReport(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """`ClusterReport`."""

    at: Time
    kind: Literal["cluster"] = "cluster"
    whole: bool = False
    submitted: Annotated[tuple[EncodedSubmitted, ...], Meta(max_length=LARGEST_REPORT)] = ()
    progressed: Annotated[tuple[EncodedProgressed, ...], Meta(max_length=LARGEST_REPORT)] = ()
    ended: Annotated[tuple[EncodedEnded, ...], Meta(max_length=LARGEST_REPORT)] = ()
    nodes: Annotated[tuple[EncodedNode, ...], Meta(max_length=LARGEST_REPORT)] = ()


_decoder = msgspec.json.Decoder(EncodedReport)


def decode(body: bytes) -> EncodedReport:
    """The report.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    return decoded(body, _decoder, ClusterReport)
