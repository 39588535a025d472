"""What of a ``workflow`` workload may change while it is served: prices of node types, and weights."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from app.kinds.contract.inputs import InvalidInput, unknown_names
from app.kinds.fields import NonNegative
from app.kinds.workflow.spec import Objective, Spec


class WorkflowPatch(BaseModel):
    """Changes that apply at once; omitted fields stay as they are."""

    model_config = ConfigDict(extra="forbid")

    prices: Annotated[
        dict[str, NonNegative], Field(description="New prices per node-hour, by type.", examples=[{"large": 0.7}])
    ] = {}
    weights: Annotated[
        dict[str, NonNegative],
        Field(description="New weights of the objective's terms; 0 disables a term.", examples=[{"cost": 0.2}]),
    ] = {}


def changed(spec: Spec, patch: WorkflowPatch) -> Spec:
    """A spec with a patch applied.

    Raises:
        InvalidInput: a node type or a weight that the spec hasn't.
    """
    issues = [
        *unknown_names("prices", patch.prices, [node.name for node in spec.nodes]),
        *unknown_names("weights", patch.weights, list(Objective.model_fields)),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for node in fields["nodes"]:
        node["price_per_hour"] = patch.prices.get(node["name"], node["price_per_hour"])
    fields["weights"] |= patch.weights
    return Spec.model_validate(fields)
