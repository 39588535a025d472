"""Specs of kind `cluster`, and the changes accepted while one is served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from app.kinds.contract.inputs import FieldIssue, InvalidInput, unknown_names
from app.kinds.fields import EarlyMaxLength, NonNegative, Positive, Probability, Slug, Strict, unique

Apart = Annotated[float, Field(ge=0.1, le=1e9)]
"""Seconds between decisions, or of waiting. Below 0.1 s an episode, in which jobs train for hours, would not end, and
clients would report without pause; the maximum is 30 years."""
MOST_NODES, MOST_GPUS, MOST_MEMBERS = 4_096, 64, 256


class NodeClass(Strict):
    """A class of identical nodes: their number, GPUs, relative speed, and price per hour (of a GPU)."""

    name: Slug
    count: Annotated[int, Field(ge=1, le=MOST_NODES)]
    gpus: Annotated[int, Field(ge=1, le=MOST_GPUS, description="GPUs per node")]
    speed: Positive = Field(default=1.0, description="relative speed of a GPU")
    price_per_hour: NonNegative = Field(default=0.0, description="price of a GPU in use")


class JobQueue(Strict):
    """Jobs of one priority; the first queue of a spec is the most urgent."""

    name: Slug
    weight: Positive = Field(default=1.0, description="relative weight of its jobs' completion times")
    ageing_seconds: Apart | None = Field(
        default=None, description="waiting time after which a job counts as of the next more urgent queue; null: never"
    )


class ClusterWeights(Strict):
    """Relative weights, without unit, of the objective's terms; 0 disables a term."""

    completion: NonNegative = Field(default=1.0, description="completion times relative to a dedicated cluster")
    occupied: NonNegative = Field(default=0.0, description="GPU-hours")
    accuracy: NonNegative = Field(
        default=0.0, description="gap between jobs' metrics and their final values, over time"
    )
    fairness: NonNegative = Field(default=0.0, description="Jain's index of the jobs' slowdowns, minus 1")
    deadlines: NonNegative = Field(
        default=1.0,
        description="missed targets of members; at 1, meeting one is worth as much as the speed of all jobs",
    )
    changes: NonNegative = Field(default=0.01, description="restarts")


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
    """When the remaining gain of a job that reports its loss or metric is small; its GPUs are then halved by window.

    No job is limited before nine others of its application have ended and are in the domain model.
    """

    tolerance: Probability = Field(
        default=0.01, description="share of the level reached below which the remaining gain is small"
    )
    doubt: NonNegative = Field(default=0.5, description="half-widths of the 90 % interval added to the remaining gain")
    window_seconds: Apart = Field(default=3600.0, description="time between halvings")


class ClusterSpec(Strict):
    """A workload of kind ``cluster``: training jobs that come and go, and the GPUs that they share."""

    name: Slug
    kind: Literal["cluster"]
    nodes: Annotated[
        tuple[NodeClass, ...],
        Field(min_length=1, max_length=16),
        EarlyMaxLength(),
        AfterValidator(unique),
        AfterValidator(_few),
    ]
    queues: Annotated[
        tuple[JobQueue, ...],
        Field(min_length=1, max_length=16),
        EarlyMaxLength(),
        AfterValidator(unique),
        AfterValidator(_first_stays),
    ] = (JobQueue(name="default"),)
    minimum: Annotated[int, Field(ge=1, description="minimum GPUs of a job, unless it sets its own")] = 1
    maximum: Annotated[
        int | None, Field(ge=1, le=MOST_NODES * MOST_GPUS, description="maximum GPUs of a job; null: all")
    ] = None
    data_power: NonNegative = Field(
        default=0.0,
        description="exponent of a job's data size, relative to its application's usual size, in the weight of its "
        "completion time. At 1, larger data gets more GPUs and the mean completion time rises; at 0, short jobs go "
        "first",
    )
    patience_seconds: Apart = Field(
        default=86_400.0, description="waiting time after which a job goes before all others, so that none starves"
    )
    restart_seconds: NonNegative = Field(default=30.0, description="time a job loses when its nodes change")
    interval_seconds: Apart = Field(default=60.0, description="time between decisions when nothing else happens")
    demotion_gpu_hours: Positive = Field(
        default=16.0,
        description="service after which the least-attained-service rule ranks a job as less urgent",
    )
    episode_intervals: Annotated[
        int, Field(ge=1, le=10_000, description="intervals per episode in training and evaluation")
    ] = 120
    members: Annotated[
        tuple[Slug, ...],
        Field(
            max_length=MOST_MEMBERS,
            description="Registered workloads that use whole GPUs. A job whose `application` names one is a run of it: "
            "its speed follows from the domain model, its length from the iterations, its deadline from the targets "
            "for `iteration_seconds`.",
        ),
        EarlyMaxLength(),
        AfterValidator(_once),
    ] = ()
    convergence: Convergence | None = Field(
        default=None,
        description="Jobs with a small remaining gain release GPUs, down to their minimum; null: disabled. Applies to "
        "jobs that state their number of iterations.",
    )
    weights: ClusterWeights = ClusterWeights()

    @field_validator("minimum")
    @classmethod
    def _there(cls, minimum: int, info: ValidationInfo) -> int:
        gpus = sum(one.count * one.gpus for one in info.data.get("nodes", ()))
        if "nodes" in info.data and minimum > gpus:
            raise ValueError(f"must be 1 to {gpus}, the GPUs of all nodes")
        return minimum

    @field_validator("maximum")
    @classmethod
    def _at_least_minimum(cls, maximum: int | None, info: ValidationInfo) -> int | None:
        if maximum is not None and maximum < info.data.get("minimum", 1):
            raise ValueError(f"must be at least {info.data['minimum']}, which is minimum")
        return maximum


# Changes to a ``cluster`` workload while it is served: prices, weights, queues, members.


class QueueChange(Strict):
    """Changes to a queue; omitted fields stay as they are."""

    weight: Positive | None = None
    ageing_seconds: Apart | None = Field(default=None, description="explicit null: never")


def _object(change: object) -> object:
    if not isinstance(change, Mapping | QueueChange):
        raise ValueError('must be an object of weight and ageing_seconds, such as {"weight": 9}')
    return change


class ClusterPatch(BaseModel):
    """Changes that apply at once; omitted fields stay as they are.

    Capacity is not part of it: runs report their nodes.
    """

    model_config = ConfigDict(extra="forbid")

    prices: Annotated[
        dict[str, NonNegative],
        Field(description="New prices per GPU-hour, by node class.", examples=[{"a100": 2.5}]),
    ] = {}
    weights: Annotated[
        dict[str, NonNegative],
        Field(description="New weights of the objective's terms; 0 disables a term.", examples=[{"occupied": 0.2}]),
    ] = {}
    queues: Annotated[
        dict[str, Annotated[QueueChange, BeforeValidator(_object)]],
        Field(description="New weights and ageing times, by queue.", examples=[{"batch": {"weight": 0.5}}]),
    ] = {}
    members: Annotated[
        tuple[Slug, ...] | None, Field(max_length=MOST_MEMBERS, description="New list of all members; null: unchanged.")
    ] = None


def apply_patch(spec: ClusterSpec, patch: ClusterPatch) -> ClusterSpec:
    """Return ``spec`` with ``patch`` applied.

    Raises:
        InvalidInput: an unknown node class, weight or queue, a null weight, an ageing first queue, or duplicate
            members.
    """
    changes = {name: queue.model_dump(exclude_unset=True) for name, queue in patch.queues.items()}
    # Names that the spec doesn't have are refused, and null weights
    issues = [
        *unknown_names("prices", patch.prices, [node.name for node in spec.nodes]),
        *unknown_names("weights", patch.weights, list(ClusterWeights.model_fields)),
        *unknown_names("queues", changes, [queue.name for queue in spec.queues]),
        *(
            FieldIssue(f"/queues/{name}/weight", "must be a number greater than 0", None)
            for name, queue in changes.items()
            if "weight" in queue and queue["weight"] is None
        ),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for node in fields["nodes"]:
        node["price_per_hour"] = patch.prices.get(node["name"], node["price_per_hour"])
    fields["queues"] = [queue | changes.get(queue["name"], {}) for queue in fields["queues"]]
    fields["weights"] |= patch.weights
    fields["members"] = spec.members if patch.members is None else patch.members
    try:
        return ClusterSpec.model_validate(fields)
    except ValidationError as error:  # of members or the first queue: the rest was checked above
        result = error.errors(include_url=False)[0]
        message, first = str(result["msg"]).removeprefix("Value error, "), spec.queues[0].name
        if result["loc"][0] == "members":
            raise InvalidInput([FieldIssue("/members", message, list(patch.members or ()))]) from error
        raise InvalidInput([FieldIssue(f"/queues/{first}/ageing_seconds", message, changes[first])]) from error
