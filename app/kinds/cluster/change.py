"""What of a ``cluster`` workload may change while it is served: prices, weights, how urgent queues are, members."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from app.kinds.cluster.spec import MOST_MEMBERS, Apart, ClusterSpec, ClusterWeights
from app.kinds.contract.inputs import FieldIssue, InvalidInput, unknown_names
from app.kinds.fields import NonNegative, Positive, Slug, Strict


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


def changed(spec: ClusterSpec, patch: ClusterPatch) -> ClusterSpec:
    """A spec with a patch applied.

    Raises:
        InvalidInput: a class of nodes, weight or queue that the spec hasn't, or a first queue that ages.
    """
    told = {name: queue.model_dump(exclude_unset=True) for name, queue in patch.queues.items()}
    issues = _issues(spec, patch, told)
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for node in fields["nodes"]:
        node["price_per_hour"] = patch.prices.get(node["name"], node["price_per_hour"])
    fields["queues"] = [queue | told.get(queue["name"], {}) for queue in fields["queues"]]
    fields["weights"] |= patch.weights
    fields["members"] = spec.members if patch.members is None else patch.members
    try:
        return ClusterSpec.model_validate(fields)
    except ValidationError as error:  # of members or the first queue: the rest was checked above
        found = error.errors(include_url=False)[0]
        message, first = str(found["msg"]).removeprefix("Value error, "), spec.queues[0].name
        if found["loc"][0] == "members":
            raise InvalidInput([FieldIssue("/members", message, list(patch.members or ()))]) from error
        raise InvalidInput([FieldIssue(f"/queues/{first}/ageing_seconds", message, told[first])]) from error


def _issues(spec: ClusterSpec, patch: ClusterPatch, told: Mapping[str, Mapping[str, Any]]) -> list[FieldIssue]:
    """Names that the spec hasn't, and weights that are taken away; ``told``: what is said of each queue."""
    return [
        *unknown_names("prices", patch.prices, [node.name for node in spec.nodes]),
        *unknown_names("weights", patch.weights, list(ClusterWeights.model_fields)),
        *unknown_names("queues", told, [queue.name for queue in spec.queues]),
        *(
            FieldIssue(f"/queues/{name}/weight", "must be a number greater than 0", None)
            for name, queue in told.items()
            if "weight" in queue and queue["weight"] is None
        ),
    ]
