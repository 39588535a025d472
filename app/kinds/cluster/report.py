"""Schemas of reports and decisions of kind ``cluster``. Times are seconds since the run began."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta
from pydantic import BaseModel, Field

from app.kinds.cluster.spec import MOST_NODES
from app.kinds.contract.engine import DecisionBase
from app.kinds.contract.kind import RunStart
from app.kinds.fields import Finite, Moment, NonNegative, Part, Positive

MOST_BESIDE = 4
"""Most applications that a step names as neighbours."""
LONGEST_REASON = 500
"""Most characters of the reason for which a job failed."""
SHORTEST, LARGEST = 1e-6, 1e9
"""Bounds of step durations in seconds; ``LARGEST`` also bounds batches and iterations."""
MOST_JOBS = 2_000
"""Most jobs present in a run at once, and most entries of a list in a report."""
MOST_CELLS = 1_000_000
"""Most jobs × nodes of a run: allocations are one table."""
MOST_NAMES = 200_000
"""Most bytes of all job names in a run: a decision may list all of them."""
Id = Annotated[str, Meta(min_length=1, max_length=255)]
Gpus = Annotated[int, Meta(ge=1, le=1_000_000)]
Samples = Annotated[int, Meta(ge=1, le=10**9)]
Seconds = Annotated[float, Meta(ge=SHORTEST, le=LARGEST)]
AtMost = Meta(max_length=MOST_JOBS)


class Submitted(Part, frozen=True, gc=False):
    """A job that was submitted or is present."""

    job: Id
    gpus: Annotated[Gpus, Meta(description="GPUs requested by its owner")]
    queue: Annotated[Id | None, Meta(description="null: the least urgent queue")] = None
    minimum: Annotated[Gpus | None, Meta(description="null: the spec's, or the GPUs requested if lower")] = None
    maximum: Annotated[Gpus | None, Meta(description="null: the spec's, or the GPUs requested if higher")] = None
    at: Annotated[Moment | None, Meta(description="arrival time; null: the time of the report")] = None
    application: Annotated[
        Id | None,
        Meta(description="what it trains: jobs of one application are expected to run at the same speed"),
    ] = None
    batch: Annotated[
        Samples | None,
        Meta(description="samples per step, over all its GPUs; with `batch_maximum`, the smallest it uses"),
    ] = None
    batch_maximum: Annotated[
        Samples | None,
        Meta(
            description="largest batch that it may choose as its GPUs change, for the largest goodput; null: `batch` "
            "is fixed. Needs `batch`"
        ),
    ] = None
    gpu_batch_minimum: Annotated[Samples | None, Meta(description="fewest samples that a GPU processes at once")] = None
    gpu_batch_maximum: Annotated[
        Samples | None,
        Meta(
            description="most samples that a GPU processes at once; beyond, gradients are accumulated; null: no limit"
        ),
    ] = None
    data: Annotated[Positive | None, Meta(description="data size, in one unit per application")] = None
    iterations: Annotated[
        Positive | None,
        Meta(description="epochs or updates until it is finished, in its own unit; null: unknown"),
    ] = None

    def __post_init__(self) -> None:
        """Check the limits of the batch; raises ValueError if they contradict each other."""
        if self.batch_maximum is not None and (self.batch is None or self.batch_maximum < self.batch):
            raise ValueError("batch_maximum needs batch, and must be at least as large")
        least, most = self.gpu_batch_minimum or 1, self.gpu_batch_maximum
        if most is not None and most < least:
            raise ValueError("gpu_batch_maximum must be at least gpu_batch_minimum")
        if least > (self.batch_maximum or self.batch or least):
            raise ValueError("gpu_batch_minimum must be at most batch_maximum, or batch")


class Progressed(Part, frozen=True, gc=False):
    """Progress of a job and its recent measurements, with the conditions they were taken under."""

    job: Id
    iteration: Annotated[
        NonNegative, Meta(description="completed so far; fewer than before: it resumed from a checkpoint")
    ]
    loss: Annotated[Finite | None, Meta(description="lower is better; or `metric`")] = None
    metric: Annotated[Finite | None, Meta(description="higher is better; or `loss`")] = None
    seconds: Annotated[Seconds | None, Meta(description="recent duration of one step")] = None
    computing: Annotated[Positive | None, Meta(description="part of the step not spent waiting for other GPUs")] = None
    gpus: Annotated[Gpus | None, Meta(description="GPUs it was measured on; null: its current ones")] = None
    nodes: Annotated[Gpus | None, Meta(description="nodes these were spread over; null: as few as they fill")] = None
    beside: Annotated[
        tuple[Id, ...],
        Meta(max_length=MOST_BESIDE, description="applications of jobs that shared its nodes then; empty: none"),
    ] = ()
    batch: Annotated[Samples | None, Meta(description="samples per step then, over all GPUs; null: as submitted")] = (
        None
    )
    noise_scale: Annotated[NonNegative | None, Meta(description="gradient noise scale, in samples")] = None

    def __post_init__(self) -> None:
        """Raise ValueError if both a loss and a metric are given."""
        if self.loss is not None and self.metric is not None:
            raise ValueError("loss must be null if metric is given: a job reports one of them")


class Ended(Part, frozen=True, gc=False):
    """A job that has finished or failed."""

    job: Id
    state: Literal["finished", "failed"] = "finished"
    reason: Annotated[
        str,
        Meta(
            max_length=LONGEST_REASON,
            description="why it failed, such as the last line of its log; shown on the run's page",
            examples=["torch.OutOfMemoryError: CUDA out of memory"],
        ),
    ] = ""


class NodeChange(Part, frozen=True, gc=False):
    """Current number of GPUs of a node; 0: it is lost."""

    node: Annotated[Id, Meta(description="Class and index, starting at 0.", examples=["a100-0"])]
    gpus: Annotated[int, Meta(ge=0, le=64)]


class ClusterReport(Part, frozen=True):
    """Changes since the last report or, if ``whole``, the full state."""

    at: Annotated[Moment, Meta(description="Time of the report, in seconds since the run's start.")]
    kind: Literal["cluster"] = "cluster"
    whole: Annotated[
        bool,
        Meta(
            description="Whether `submitted` and `nodes` are complete: jobs not listed have left, nodes not listed "
            "have the GPUs of the spec. Earlier information on listed jobs is kept."
        ),
    ] = False
    submitted: Annotated[tuple[Submitted, ...], AtMost] = ()
    progressed: Annotated[tuple[Progressed, ...], AtMost] = ()
    ended: Annotated[tuple[Ended, ...], AtMost] = ()
    nodes: Annotated[tuple[NodeChange, ...], Meta(max_length=MOST_NODES)] = ()


# Schemas of decisions.


class JobChange(BaseModel):
    """Change of one job's GPUs and nodes, with the reason and times to completion in seconds."""

    job: str
    before: int = Field(description="GPUs before this decision.")
    gpus: int = Field(description="GPUs from now on; 0: pending.")
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
        default=None, description="Time to its deadline, by the targets of its member workload, if any."
    )
    ceiling: int | None = Field(
        default=None, description="New maximum of GPUs, as its remaining gain is small; null: unchanged."
    )
    batch: int | None = Field(
        default=None,
        description="Samples per step, over all its GPUs, of the largest goodput; null unless it has `batch_maximum`.",
    )


class JobStart(BaseModel):
    """Expected seconds until a pending job starts, with a 90 % interval."""

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
    """Decision of a shadow agent for comparison: recorded, not applied."""

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
        default=[], description="Pending jobs in the order of their expected starts, as far as known; at most 100."
    )
    running: int = Field(description="Number of running jobs.")
    waiting: int = Field(description="Number of pending jobs.")
    free: int = Field(description="Number of unassigned GPUs.")
    wake_at: float | None = Field(description="Latest time for the next report; null if there are no jobs.")
    rule: str = Field(description="Rule that assigned the GPUs: the heuristic's, or `weighed`, by an agent.")
    shadow: ShadowRule | None = Field(default=None, description="Decision of the run's shadow, if any.")


class ClusterStart(RunStart):
    """Parameters of a new run of kind ``cluster``."""
