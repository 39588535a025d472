"""Specs of kind `iterative`, and the changes accepted while one is served."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic.config import JsonDict

from app.charts.text import exact
from app.kinds.contract.caps import Caps
from app.kinds.contract.inputs import SMALLEST_NUMBER, FieldIssue, InvalidInput, unknown_names
from app.kinds.fields import EarlyMaxLength, Finite, Name, NonNegative, Positive, Probability, Slug, Strict, unique

SECONDS = "iteration_seconds"  # metric that is always present: costs are billed by it
MAXIMUM_ALLOCATIONS = 20_000
MAXIMUM_ACTIONS = 1_000
MAXIMUM_WEIGHED = 6_000
"""Most joint actions × metrics, so that a decision takes some 15 ms on the event loop."""
Unit = Annotated[str, Field(max_length=63)]
NEAR = 0.1
"""Relative deviation from a set point within which it counts as met."""
ROUNDING = 1e-9
"""Relative tolerance of targets for rounding errors of sums."""


class Resource(Strict):
    """A resource that is allocated in equal steps between two bounds, in ``unit``, with its price per unit and hour."""

    name: Name
    unit: Unit = ""
    minimum: NonNegative
    maximum: NonNegative
    step: Positive = 1.0
    max_steps: Annotated[int, Field(ge=1, le=100)] = 1
    initial: Finite | None = Field(default=None, description="allocation before a model is known; default: the minimum")
    price_per_hour: NonNegative = 1.0
    change_seconds: NonNegative = 0.0

    @property
    def levels(self) -> int:
        """Number of allocations of this resource, from ``minimum`` to ``maximum``."""
        return round((self.maximum - self.minimum) / self.step) + 1

    @property
    def start(self) -> float:
        """Allocation before a model is known, in ``unit``: ``initial``, else ``minimum``."""
        return self.minimum if self.initial is None else self.initial

    def amount(self, level: int) -> float:
        """Return the allocation ``level`` steps above ``minimum``, in ``unit``, without rounding errors."""
        return float(f"{self.minimum + self.step * level:.15g}")

    @property
    def accepted(self) -> str:
        """Allocations that are accepted, as a text."""
        return f"must be one of {exact(self.minimum)}, {exact(self.amount(1))} … {exact(self.maximum)}"

    def level(self, value: float) -> int | None:
        """Return the number of steps of ``value`` above ``minimum``; None if out of bounds or between two steps."""
        exact = (value - self.minimum) / self.step
        if not math.isfinite(exact):
            return None
        nearest = round(exact)
        on_grid = abs(exact - nearest) <= 1e-6 and 0 <= nearest < self.levels
        return nearest if on_grid else None

    @model_validator(mode="after")
    def _grid(self) -> Self:
        if self.minimum > self.maximum:
            raise ValueError(f"minimum {exact(self.minimum)} must be at most maximum, {exact(self.maximum)}")
        steps = (self.maximum - self.minimum) / self.step
        if not math.isfinite(steps):
            raise ValueError(
                f"step {exact(self.step)} is too small for the range {exact(self.minimum)} to {exact(self.maximum)}"
            )
        if abs(steps - round(steps)) > 1e-6:
            raise ValueError(
                f"step {exact(self.step)} must divide the range {exact(self.minimum)} to {exact(self.maximum)}"
            )
        if self.maximum == 0:
            raise ValueError("maximum must be greater than 0")
        if self.level(self.start) is None:
            raise ValueError(f"initial {exact(self.start)} {self.accepted}")
        return self


def _of_size(target: float) -> float:
    if target < SMALLEST_NUMBER:
        raise ValueError(f"must be at least {exact(SMALLEST_NUMBER)}")
    return target


Target = Annotated[Positive, AfterValidator(_of_size)]


class Metric(Strict):
    """A quantity measured in each iteration; without a target it is only recorded and predicted."""

    name: Name
    unit: Unit = ""
    target: Target | None = None
    goal: Literal["at_most", "at_least", "track"] = "at_most"
    scope: Literal["iteration", "run"] = Field(
        default="iteration", description="whether the target holds for each iteration, or for the sum over the run"
    )
    weight: NonNegative = 1.0
    probability: Probability | None = Field(
        default=None,
        description="Required probability of meeting the target: the cheapest allocation that reaches it under the "
        "model is chosen, however small a miss would be. If none does, the weights decide.",
    )

    def is_met(self, reached: float, wanted: float) -> bool:
        """Return whether a sum or mean ``reached`` meets the target ``wanted`` (same unit), within rounding.

        A set point is met within ``NEAR`` of it."""
        gap = {"at_most": reached - wanted, "at_least": wanted - reached, "track": abs(reached - wanted)}[self.goal]
        return gap <= (ROUNDING + (NEAR if self.goal == "track" else 0.0)) * abs(wanted)

    @property
    def uncertain(self) -> str | None:
        """Reason why the target can't have a required probability; None: it can."""
        if self.target is None:
            return "needs a target to be met"
        if self.goal == "track":
            return "needs goal at_most or at_least: a set point is never met exactly"
        return None

    @model_validator(mode="after")
    def _attainable(self) -> Self:
        if self.probability is not None and self.uncertain:
            raise ValueError(f"probability {self.uncertain}: probability {exact(self.probability)} of {self.name}")
        return self


class Feature(Strict):
    """A known number that the metrics depend on besides the allocation, for example the batch size."""

    name: Name
    minimum: Finite
    maximum: Finite

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.minimum >= self.maximum:
            raise ValueError(f"minimum {exact(self.minimum)} must be less than maximum, {exact(self.maximum)}")
        return self


class Weights(Strict):
    """Relative weights, without unit, of the three terms of the reward."""

    sla: NonNegative = 1.0
    cost: NonNegative = 0.1
    change: NonNegative = 0.01


Fraction = Annotated[float, Field(ge=0, le=1)]


def _ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the first must be at most the second: {exact(bounds[0])}, {exact(bounds[1])}")
    return bounds


class Criterion(Strict):
    """Limit on one simulated iteration: the lesser of a duration and a share of the real iteration."""

    max_seconds: Positive = 1e-3
    max_fraction: Positive = 1e-3


class LostCapacity(Strict):
    """From some iteration on, a part of the resources is unavailable."""

    probability: Annotated[float, Field(ge=0, le=1, description="share of runs in which it happens")]
    left: Annotated[
        tuple[Fraction, Fraction],
        Field(description="lowest and highest remaining share of each resource's range above its minimum"),
    ] = (0.4, 0.9)

    _ordered = field_validator("left")(_ascending)


class PaceShift(Strict):
    """From some iteration on, all measurements change by a factor."""

    probability: Annotated[float, Field(ge=0, le=1, description="share of runs in which it happens")]
    factor: Annotated[
        tuple[Positive, Positive], Field(description="lowest and highest factor, drawn log-uniformly")
    ] = (1.1, 1.6)

    _ordered = field_validator("factor")(_ascending)


class Disturbances(Strict):
    """Disturbances to expect in runs beyond what past executions show; agents are trained and evaluated with them.

    The iteration at which one begins is drawn uniformly over the run. As in a live run, it shows only in what is
    measured, and in a reported allocation that is less than the decided one. A ``pace_shift`` to slower paces also
    changes decisions at once: without an agent, targets are aimed at earlier, and allocations change less often."""

    lost_capacity: LostCapacity | None = None
    pace_shift: PaceShift | None = None


class IterativeSpec(Strict):
    """A workload of kind ``iterative``: its resources, metrics with targets, features and preferences."""

    name: Slug
    kind: Literal["iterative"] = "iterative"
    resources: Annotated[
        tuple[Resource, ...], Field(min_length=1, max_length=8), EarlyMaxLength(), AfterValidator(unique)
    ]
    metrics: Annotated[tuple[Metric, ...], Field(max_length=16), EarlyMaxLength(), AfterValidator(unique)] = ()
    features: Annotated[tuple[Feature, ...], Field(max_length=8), EarlyMaxLength(), AfterValidator(unique)] = ()
    iterations: Annotated[int, Field(ge=1, le=100_000)]
    weights: Weights = Weights()
    criterion: Criterion = Criterion()
    use_earlier_workloads: bool = Field(
        default=True,
        description="Whether the first decisions, before a domain model is fitted, are also predicted from the "
        "tenant's similar earlier workloads, and this one's model serves later workloads so.",
    )
    disturbances: Disturbances = Disturbances()
    caps: Caps | None = Field(
        default=None,
        description="Limits for all runs of the workload in a month (UTC): those that run, and those that ended in it.",
    )

    @model_validator(mode="before")
    @classmethod
    def _always_timed(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        metrics = data.get("metrics", ())
        if isinstance(metrics, (list, tuple)):
            names = [m.get("name") if isinstance(m, dict) else getattr(m, "name", None) for m in metrics]
            if SECONDS not in names:
                data = {**data, "metrics": [*metrics, {"name": SECONDS, "unit": "s"}]}
        return data

    @model_validator(mode="after")
    def _tractable(self) -> Self:
        allocations = math.prod(r.levels for r in self.resources)
        if allocations > MAXIMUM_ALLOCATIONS:
            raise ValueError(
                f"the allocation grid has {allocations} points; at most {MAXIMUM_ALLOCATIONS} are accepted "
                "(larger steps, or fewer resources)"
            )
        actions = math.prod(2 * r.max_steps + 1 for r in self.resources)
        if actions > MAXIMUM_ACTIONS:
            raise ValueError(f"max_steps gives {actions} joint actions; at most {MAXIMUM_ACTIONS} are accepted")
        if actions * len(self.metrics) > MAXIMUM_WEIGHED:
            raise ValueError(
                f"max_steps gives {actions} joint actions with {len(self.metrics)} metrics each; at most "
                f"{MAXIMUM_WEIGHED} together are accepted"
            )
        return self


Spec = IterativeSpec  # each kind's is found under this name; in the API's schema names must differ


# Changes to an ``iterative`` workload that need no new training: targets, probabilities, prices and weights.


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
    caps: Annotated[
        Caps | None, Field(description="New limits for all runs of a month, in place of the former ones; null: none.")
    ] = None


def apply_patch(spec: Spec, patch: IterativePatch) -> Spec:
    """Return ``spec`` with ``patch`` applied.

    Raises:
        InvalidInput: ``patch`` names an unknown metric, resource or weight, or a probability that a target can't have.
        ValidationError: the result is no valid spec.
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
        probability = metric["probability"] if metric["target"] is not None else None
        metric["probability"] = patch.probabilities.get(metric["name"], probability)
    for resource in fields["resources"]:
        resource["price_per_hour"] = patch.prices.get(resource["name"], resource["price_per_hour"])
    fields["weights"] |= patch.weights
    if "caps" in patch.model_fields_set:
        fields["caps"] = patch.caps
    _check_probabilities(fields["metrics"])
    return Spec.model_validate(fields)


def _check_probabilities(metrics: list[dict[str, Any]]) -> None:
    probabilities = [(metric, metric["probability"]) for metric in metrics if metric["probability"] is not None]
    checked = [(Metric.model_validate(metric | {"probability": None}), value) for metric, value in probabilities]
    issues = [FieldIssue(f"/probabilities/{m.name}", m.uncertain, value) for m, value in checked if m.uncertain]
    if issues:
        raise InvalidInput(issues)
