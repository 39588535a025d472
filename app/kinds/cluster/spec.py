"""What crosses the API when a workload of kind ``cluster`` is registered."""

from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from app.kinds.fields import NonNegative, Positive, Probability, Slug, Strict

Apart = Annotated[float, Field(ge=0.1, le=1e9)]
"""Seconds between decisions, or of waiting. Of less an episode, in which jobs train for hours, would never end, and
whoever reports would be asked to come back at once; what is longer than 30 years never happens."""
MOST_NODES, MOST_GPUS, MOST_MEMBERS = 4_096, 64, 256
Named = TypeVar("Named", "NodeClass", "JobQueue")


class NodeClass(Strict):
    """Equal nodes."""

    name: Slug
    count: Annotated[int, Field(ge=1, le=MOST_NODES)]
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS, description="of one node")]
    speed: Positive = Field(default=1.0, description="of a GPU, against the others'")
    price_per_hour: NonNegative = Field(default=0.0, description="of a GPU that is used")


class JobQueue(Strict):
    """Jobs of one priority; the first queue of a spec is the most urgent."""

    name: Slug
    weight: Positive = Field(default=1.0, description="of a job's completion time against those of other queues")
    ageing_seconds: Apart | None = Field(
        default=None, description="of waiting, after which a job counts as of the queue before; null: never"
    )


class ClusterWeights(Strict):
    """What the terms of the objective are worth against each other."""

    completion: NonNegative = Field(default=1.0, description="completion times over those on a cluster of one's own")
    occupied: NonNegative = Field(default=0.0, description="GPU-hours")
    accuracy: NonNegative = Field(default=0.0, description="what jobs' metrics lack of their last ones, over time")
    fairness: NonNegative = Field(default=0.0, description="Jain's index of the jobs' slow-downs, less 1")
    deadlines: NonNegative = Field(
        default=1.0,
        description="targets of members that are missed; 1: one that is met is worth as much as the speed of all jobs",
    )
    changes: NonNegative = Field(default=0.01, description="restarts")


def _unique(named: tuple[Named, ...]) -> tuple[Named, ...]:
    names = [one.name for one in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"names must be unique: {', '.join(twice)} given twice")
    return named


def _few(nodes: tuple[NodeClass, ...]) -> tuple[NodeClass, ...]:
    count = sum(one.count for one in nodes)
    if count > MOST_NODES:
        raise ValueError(f"nodes must be at most {MOST_NODES}: {count}")
    return nodes


def _first_stays(queues: tuple[JobQueue, ...]) -> tuple[JobQueue, ...]:
    first = queues[0]
    if first.ageing_seconds is not None:
        raise ValueError(f"ageing_seconds of {first.name!r} must be null: no queue is more urgent")
    return queues


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"members must be different: {', '.join(twice)} given twice")
    return names


class Convergence(Strict):
    """When a job that tells its loss or metric has little left to gain: it is halved then, window by window."""

    tolerance: Probability = Field(default=0.015, description="part of what a job has reached below which it is little")
    doubt: NonNegative = Field(default=0.5, description="half 90 % intervals that are added to what is left to gain")
    window_seconds: Apart = Field(default=3600.0, description="from one halving to the next")


class ClusterSpec(Strict):
    """A workload of kind ``cluster``: training jobs that come and go, and the GPUs that they share."""

    name: Slug
    kind: Literal["cluster"]
    nodes: Annotated[
        tuple[NodeClass, ...], Field(min_length=1, max_length=16), AfterValidator(_unique), AfterValidator(_few)
    ]
    queues: Annotated[
        tuple[JobQueue, ...],
        Field(min_length=1, max_length=16),
        AfterValidator(_unique),
        AfterValidator(_first_stays),
    ] = (JobQueue(name="default"),)
    minimum: Annotated[int, Field(ge=1, description="GPUs of a job, unless it says otherwise")] = 1
    maximum: Annotated[int | None, Field(ge=1, le=MOST_NODES * MOST_GPUS, description="null: all there are")] = None
    data_power: NonNegative = Field(
        default=0.0,
        description="of a job's data over the usual of its application, by which its completion time counts more. With "
        "1, larger data has more GPUs, and the mean completion time is longer; 0: short jobs first",
    )
    patience_seconds: Apart = Field(
        default=86_400.0, description="of waiting, after which a job comes before all others: nobody waits for ever"
    )
    restart_seconds: NonNegative = Field(default=30.0, description="that a job loses when its nodes change")
    interval_seconds: Apart = Field(default=60.0, description="between decisions, where nothing else happens")
    demotion_gpu_hours: Positive = Field(
        default=16.0,
        description="of service after which the rule of least attained service counts a job as less urgent",
    )
    episode_intervals: Annotated[
        int, Field(ge=1, le=10_000, description="of an episode, in which agents learn and are judged")
    ] = 120
    members: Annotated[
        tuple[Slug, ...],
        Field(
            max_length=MOST_MEMBERS,
            description="Registered workloads that take whole GPUs. A job whose `application` is the name of one is a "
            "run of it: as fast as its domain model says, as long as its iterations, and wanted by its targets for "
            "`iteration_seconds`.",
        ),
        AfterValidator(_once),
    ] = ()
    convergence: Convergence | None = Field(
        default=None,
        description="Jobs that have little left to gain give GPUs back, down to their minimum; null: none does. It is "
        "for jobs that say how many iterations they have.",
    )
    weights: ClusterWeights = ClusterWeights()

    @field_validator("minimum")
    @classmethod
    def _there(cls, minimum: int, given: ValidationInfo) -> int:
        gpus = sum(one.count * one.gpus for one in given.data.get("nodes", ()))
        if "nodes" in given.data and minimum > gpus:
            raise ValueError(f"must be 1 to {gpus}, the GPUs of all nodes")
        return minimum

    @field_validator("maximum")
    @classmethod
    def _at_least_minimum(cls, maximum: int | None, given: ValidationInfo) -> int | None:
        if maximum is not None and maximum < given.data.get("minimum", 1):
            raise ValueError(f"must be at least {given.data['minimum']}, which is minimum")
        return maximum


Spec = ClusterSpec
