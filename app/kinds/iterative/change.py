"""What of an ``iterative`` workload may change without a new training: targets, probabilities, prices and weights."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict

from app.kinds.contract.inputs import FieldIssue, InvalidInput, unknown_names
from app.kinds.fields import NonNegative, Probability
from app.kinds.iterative.spec import Metric, Spec, Target, Weights

EXAMPLE: JsonDict = {"targets": {"iteration_seconds": 1500}, "prices": {"gpus": 3.1}, "weights": {"cost": 0.2}}


class IterativePatch(BaseModel):
    """Changes that apply at once; omitted fields stay as they are."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [EXAMPLE]})

    targets: Annotated[
        dict[str, Target | None],
        Field(description="New targets by metric; null removes a target.", examples=[{"iteration_seconds": 1500}]),
    ] = {}
    probabilities: Annotated[
        dict[str, Probability | None],
        Field(
            description="Required probabilities of meeting targets, by metric; null: the weights decide. Removing a "
            "target removes its probability.",
            examples=[{"iteration_seconds": 0.95}],
        ),
    ] = {}
    prices: Annotated[
        dict[str, NonNegative],
        Field(description="New prices per unit-hour, by resource.", examples=[{"gpus": 3.1}]),
    ] = {}
    weights: Annotated[
        dict[str, NonNegative],
        Field(description="New weights of the objective's terms; 0 disables a term.", examples=[{"cost": 0.2}]),
    ] = {}


def changed(spec: Spec, patch: IterativePatch) -> Spec:
    """A spec with a patch applied.

    Raises:
        InvalidInput: a metric, a resource or a weight that the spec hasn't; a probability that a target can't have.
    """
    issues = [
        *unknown_names("targets", patch.targets, [metric.name for metric in spec.metrics]),
        *unknown_names("probabilities", patch.probabilities, [metric.name for metric in spec.metrics]),
        *unknown_names("prices", patch.prices, [resource.name for resource in spec.resources]),
        *unknown_names("weights", patch.weights, list(Weights.model_fields)),
    ]
    if issues:
        raise InvalidInput(issues)
    fields = spec.model_dump()
    for metric in fields["metrics"]:
        metric["target"] = patch.targets.get(metric["name"], metric["target"])
        kept = metric["probability"] if metric["target"] is not None else None
        metric["probability"] = patch.probabilities.get(metric["name"], kept)
    for resource in fields["resources"]:
        resource["price_per_hour"] = patch.prices.get(resource["name"], resource["price_per_hour"])
    fields["weights"] |= patch.weights
    _check_probabilities(fields["metrics"])
    return Spec.model_validate(fields)


def _check_probabilities(metrics: list[dict[str, Any]]) -> None:
    given = [(metric, metric["probability"]) for metric in metrics if metric["probability"] is not None]
    checked = [(Metric.model_validate(metric | {"probability": None}), value) for metric, value in given]
    issues = [FieldIssue(f"/probabilities/{m.name}", m.uncertain, value) for m, value in checked if m.uncertain]
    if issues:
        raise InvalidInput(issues)
