"""Reports and decisions of kind ``cluster`` on the wire. Times are seconds since the run began.

Pydantic's models are the schema; their ``msgspec`` twins are read on the hot path, and equal reports are encoded to
equal bytes.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import msgspec
from msgspec import Meta, Struct
from pydantic import BaseModel, Field, model_validator

from app.kinds.cluster.spec import MOST_NODES
from app.kinds.contract.engine import DecisionBase
from app.kinds.contract.kind import RunStart
from app.kinds.engine import decoded
from app.kinds.fields import Amount, Finite, Moment, NonNegative, Number, Positive, PositiveNumber, Strict, Time

MOST_BESIDE = 4
"""Applications of jobs that share the nodes of a step."""
SHORTEST, LARGEST = 1e-6, 1e9
"""Seconds that a step can take; batches and iterations are as large at most."""
MOST_JOBS = 2_000
"""That wait or run in a run at once, or that a list of a report names."""
MOST_CELLS = 1_000_000
"""Jobs times nodes of a run: what each job has on each node is one table."""
MOST_NAMES = 200_000
"""Bytes of the names of the jobs in a run: a decision may name all of them."""
Id = Annotated[str, Field(min_length=1, max_length=255)]
Gpus = Annotated[int, Field(ge=1, le=1_000_000)]
Samples = Annotated[int, Field(ge=1, le=10**9)]
Seconds = Annotated[float, Field(ge=SHORTEST, le=LARGEST, allow_inf_nan=False)]


class Submitted(Strict):
    """A job that was submitted or is present."""

    job: Id
    gpus: Gpus = Field(description="GPUs requested by its owner")
    queue: Id | None = Field(default=None, description="null: the least urgent queue")
    minimum: Gpus | None = Field(default=None, description="null: the spec's, or the GPUs requested if lower")
    maximum: Gpus | None = Field(default=None, description="null: the spec's, or the GPUs requested if higher")
    at: Moment | None = Field(default=None, description="arrival time; null: the time of the report")
    application: Id | None = Field(
        default=None, description="what it trains: jobs of one application are expected to run at the same speed"
    )
    batch: Samples | None = Field(
        default=None, description="samples per step, over all its GPUs; with `batch_maximum`, the smallest it uses"
    )
    batch_maximum: Samples | None = Field(
        default=None,
        description="largest batch that it may choose as its GPUs change, for the largest goodput; null: `batch` is "
        "fixed. Needs `batch`",
    )
    gpu_batch_minimum: Samples | None = Field(default=None, description="fewest samples that a GPU does at once")
    gpu_batch_maximum: Samples | None = Field(
        default=None,
        description="most samples that a GPU does at once; of more the gradients are accumulated; null: no limit",
    )
    data: Positive | None = Field(default=None, description="data size, in one unit per application")
    iterations: Positive | None = Field(
        default=None, description="epochs or updates until it is finished, in its own unit; null: unknown"
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.batch_maximum is not None and (self.batch is None or self.batch_maximum < self.batch):
            raise ValueError("batch_maximum needs batch, and must be at least as large")
        least, most = self.gpu_batch_minimum or 1, self.gpu_batch_maximum
        if most is not None and most < least:
            raise ValueError("gpu_batch_maximum must be at least gpu_batch_minimum")
        largest = self.batch_maximum or self.batch
        if largest is not None and least > largest:
            raise ValueError("gpu_batch_minimum must be at most batch_maximum, or batch")
        return self


class Progressed(Strict):
    """Progress of a job and its recent measurements, with the conditions they were taken under."""

    job: Id
    iteration: NonNegative = Field(description="completed so far; fewer than before: it resumed from a checkpoint")
    loss: Finite | None = Field(default=None, description="lower is better; or `metric`")
    metric: Finite | None = Field(default=None, description="higher is better; or `loss`")
    seconds: Seconds | None = Field(default=None, description="recent duration of one step")
    computing: Positive | None = Field(default=None, description="part of the step not spent waiting for other GPUs")
    gpus: Gpus | None = Field(default=None, description="GPUs it was measured on; null: its current ones")
    nodes: Gpus | None = Field(default=None, description="nodes these were spread over; null: as few as they fill")
    beside: Annotated[tuple[Id, ...], Field(max_length=MOST_BESIDE)] = Field(
        default=(), description="applications of jobs that shared its nodes then; empty: none"
    )
    batch: Samples | None = Field(default=None, description="samples per step then, over all GPUs; null: as submitted")
    noise_scale: NonNegative | None = Field(default=None, description="gradient noise scale, in samples")

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.loss is not None and self.metric is not None:
            raise ValueError("loss must be null beside a metric: what a job learns is told as one of them")
        return self


class Ended(Strict):
    """A job that has finished or failed, and leaves."""

    job: Id
    state: Literal["finished", "failed"] = "finished"


class NodeChange(Strict):
    """Current number of GPUs of a node; 0: it is lost."""

    node: Id = Field(description="Class and index, starting at 0.", examples=["a100-0"])
    gpus: Annotated[int, Field(ge=0, le=64)]


class ClusterReport(Strict):
    """Changes since the last report or, if ``whole``, the full state."""

    kind: Literal["cluster"] = "cluster"
    at: Moment = Field(description="Time of the report, in seconds since the run's start.")
    whole: bool = Field(
        default=False,
        description="Whether `submitted` and `nodes` are complete: jobs not listed have left, nodes not listed have "
        "the GPUs of the spec. What is known of listed jobs is kept.",
    )
    submitted: Annotated[tuple[Submitted, ...], Field(max_length=MOST_JOBS)] = ()
    progressed: Annotated[tuple[Progressed, ...], Field(max_length=MOST_JOBS)] = ()
    ended: Annotated[tuple[Ended, ...], Field(max_length=MOST_JOBS)] = ()
    nodes: Annotated[tuple[NodeChange, ...], Field(max_length=MOST_NODES)] = ()


Text = Annotated[str, Meta(min_length=1, max_length=255)]
Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Batch = Annotated[int, Meta(ge=1, le=10**9)]


class EncodedSubmitted(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """``Submitted`` on the fast path."""

    job: Text
    gpus: Count
    queue: Text | None = None
    minimum: Count | None = None
    maximum: Count | None = None
    at: Time | None = None
    application: Text | None = None
    batch: Batch | None = None
    batch_maximum: Batch | None = None
    gpu_batch_minimum: Batch | None = None
    gpu_batch_maximum: Batch | None = None
    data: PositiveNumber | None = None
    iterations: PositiveNumber | None = None

    def __post_init__(self) -> None:
        """Refuse what Pydantic's model refuses, which says why."""
        if self.batch_maximum is not None and (self.batch is None or self.batch_maximum < self.batch):
            raise ValueError("batch_maximum")
        if self.gpu_batch_maximum is not None and self.gpu_batch_maximum < (self.gpu_batch_minimum or 1):
            raise ValueError("gpu_batch_maximum")
        if (self.gpu_batch_minimum or 1) > (self.batch_maximum or self.batch or self.gpu_batch_minimum or 1):
            raise ValueError("gpu_batch_minimum")


class EncodedProgressed(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """``Progressed`` on the fast path."""

    job: Text
    iteration: Amount
    loss: Number | None = None
    metric: Number | None = None
    seconds: Annotated[float, Meta(ge=SHORTEST, le=LARGEST)] | None = None
    computing: PositiveNumber | None = None
    gpus: Count | None = None
    nodes: Count | None = None
    beside: Annotated[tuple[Text, ...], Meta(max_length=MOST_BESIDE)] = ()
    batch: Batch | None = None
    noise_scale: Amount | None = None

    def __post_init__(self) -> None:
        """Refuse what Pydantic's model refuses, which says why."""
        if self.loss is not None and self.metric is not None:
            raise ValueError("loss beside a metric")


class EncodedEnded(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True, gc=False):
    """``Ended`` on the fast path."""

    job: Text
    state: Literal["finished", "failed"] = "finished"


class EncodedNode(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """``NodeChange`` on the fast path."""

    node: Text
    gpus: Annotated[int, Meta(ge=0, le=64)]


class EncodedReport(Struct, forbid_unknown_fields=True, omit_defaults=True, frozen=True):
    """``ClusterReport`` on the fast path."""

    at: Time
    kind: Literal["cluster"] = "cluster"
    whole: bool = False
    submitted: Annotated[tuple[EncodedSubmitted, ...], Meta(max_length=MOST_JOBS)] = ()
    progressed: Annotated[tuple[EncodedProgressed, ...], Meta(max_length=MOST_JOBS)] = ()
    ended: Annotated[tuple[EncodedEnded, ...], Meta(max_length=MOST_JOBS)] = ()
    nodes: Annotated[tuple[EncodedNode, ...], Meta(max_length=MOST_NODES)] = ()


_decoder = msgspec.json.Decoder(EncodedReport)


def decode(body: bytes) -> EncodedReport:
    """The report.

    Raises:
        ValidationError, InvalidInput: it is none.
    """
    return decoded(body, _decoder, ClusterReport)


# What a decision says.


class JobChange(BaseModel):
    """Change of one job, and why."""

    job: str
    before: int = Field(description="GPUs before this decision.")
    gpus: int = Field(description="GPUs from now on; 0: it waits.")
    nodes: dict[str, int] = Field(description="Its GPUs from now on, by node.")
    code: str = Field(description="`started`, `grown`, `shrunk`, `moved` or `preempted`.")
    text: str
    trades: dict[str, int] = Field(description="GPUs by the other job: gained from it, or lost to it.")
    seconds_left_before: float | None = Field(
        description="Expected time to completion on its previous GPUs; null without GPUs, or before its application "
        "was measured."
    )
    seconds_left: float | None = Field(description="The same on its GPUs from now on, including a restart.")
    seconds_left_low: float | None = Field(
        default=None,
        description="Lower bound of the time to completion, whatever it has meanwhile: with `seconds_left_high` a 90 % "
        "interval, by how far off predictions for other jobs of this run were; null until 19 have finished.",
    )
    seconds_left_high: float | None = Field(default=None, description="Upper bound.")
    seconds_wanted: float | None = Field(
        default=None, description="Time until it should be finished, by the targets of its member workload, if any."
    )
    ceiling: int | None = Field(
        default=None, description="New maximum of GPUs, since it has little left to gain; null: no new limit."
    )
    batch: int | None = Field(
        default=None,
        description="Samples per step, over all its GPUs, of the largest goodput; null unless it has `batch_maximum`.",
    )


class JobStart(BaseModel):
    """Expected start of a job that waits."""

    job: str
    seconds: float = Field(
        description="Expected time to its start: when running jobs, as they are expected to end, have left its minimum "
        "of GPUs after what the jobs before it take."
    )
    seconds_low: float | None = Field(
        default=None,
        description="Lower bound: with `seconds_high` a 90 % interval, by how far off predictions for other jobs of "
        "this run were; null until 19 that waited have started.",
    )
    seconds_high: float | None = Field(default=None, description="Upper bound.")


class ShadowRule(BaseModel):
    """What another agent would have done; recorded, without effect."""

    agent: int = Field(description="Version of the shadow.")
    rule: str | None = Field(description="Rule by which it would have assigned GPUs; null if it failed.")
    agrees: bool = Field(description="Whether every job would have had the same GPUs.")
    problem: str | None = Field(description="What failed, if anything.")


class ClusterDecision(DecisionBase):
    """GPUs and nodes of each job from now on; jobs not listed keep what they have."""

    kind: Literal["cluster"]
    at: float = Field(description="Time of the report, in seconds since the run's start.")
    changes: list[JobChange]
    starts: list[JobStart] = Field(
        default=[], description="Waiting jobs that start next, in order; at most 100, as far as their starts are known."
    )
    running: int = Field(description="Jobs that have GPUs.")
    waiting: int = Field(description="Jobs that have no GPUs.")
    free: int = Field(description="Unassigned GPUs.")
    wake_at: float | None = Field(description="Latest time for the next report; null if there are no jobs.")
    rule: str = Field(description="Rule that assigned the GPUs: the heuristic's, or `weighed`, by an agent.")
    shadow: ShadowRule | None = Field(default=None, description="Decision of the run's shadow, if any.")


class ClusterStart(RunStart):
    """Start a live run of a workload of kind ``cluster``."""
