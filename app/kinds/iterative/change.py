"""What of an ``iterative`` workload may change without a new training: targets, prices and weights."""

from app.kinds.contract.base import Change, InvalidInput, unknown_names
from app.kinds.iterative.spec import Spec, Weights


def changed(spec: Spec, change: Change) -> Spec:
    """A spec with a change applied.

    Raises:
        InvalidInput: a metric, a resource or a weight that the spec hasn't.
    """
    issues = [
        *unknown_names("targets", change.targets, [metric.name for metric in spec.metrics]),
        *unknown_names("prices", change.prices, [resource.name for resource in spec.resources]),
        *unknown_names("weights", change.weights, list(Weights.model_fields)),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for metric in fields["metrics"]:
        metric["target"] = change.targets.get(metric["name"], metric["target"])
    for resource in fields["resources"]:
        resource["price_per_hour"] = change.prices.get(resource["name"], resource["price_per_hour"])
    fields["weights"] |= change.weights
    return Spec.model_validate(fields)
