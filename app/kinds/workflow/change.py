"""What of a ``workflow`` workload may change while it is served: prices of node types, and weights."""

from app.kinds.contract.base import Change, InvalidInput, unknown_names
from app.kinds.workflow.spec import Objective, Spec


def changed(spec: Spec, change: Change) -> Spec:
    """A spec with a change applied.

    Raises:
        InvalidInput: a node type or a weight that the spec hasn't, or targets, which this kind hasn't.
    """
    issues = [
        *unknown_names("targets", change.targets, []),
        *unknown_names("prices", change.prices, [node.name for node in spec.nodes]),
        *unknown_names("weights", change.weights, list(Objective.model_fields)),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for node in fields["nodes"]:
        node["price_per_hour"] = change.prices.get(node["name"], node["price_per_hour"])
    fields["weights"] |= change.weights
    return Spec.model_validate(fields)
