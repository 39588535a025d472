from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.metric_goal import MetricGoal
from ..models.metric_scope import MetricScope
from ..types import UNSET, Unset

T = TypeVar("T", bound="Metric")


@_attrs_define
class Metric:
    """A quantity measured in each iteration; without a target it is only recorded and predicted."""

    name: str
    unit: str | Unset = ""
    target: float | None | Unset = UNSET
    goal: MetricGoal | Unset = MetricGoal.AT_MOST
    scope: MetricScope | Unset = MetricScope.ITERATION
    """ whether the target holds for each iteration, or for the sum over the run """
    weight: float | Unset = 1.0
    probability: float | None | Unset = UNSET
    """ Required probability of meeting the target: the cheapest allocation that reaches it under the model is
    chosen, however small a miss would be. If none does, the weights decide. """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        unit = self.unit

        target: float | None | Unset
        if isinstance(self.target, Unset):
            target = UNSET
        else:
            target = self.target

        goal: str | Unset = UNSET
        if not isinstance(self.goal, Unset):
            goal = self.goal.value

        scope: str | Unset = UNSET
        if not isinstance(self.scope, Unset):
            scope = self.scope.value

        weight = self.weight

        probability: float | None | Unset
        if isinstance(self.probability, Unset):
            probability = UNSET
        else:
            probability = self.probability

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if unit is not UNSET:
            field_dict["unit"] = unit
        if target is not UNSET:
            field_dict["target"] = target
        if goal is not UNSET:
            field_dict["goal"] = goal
        if scope is not UNSET:
            field_dict["scope"] = scope
        if weight is not UNSET:
            field_dict["weight"] = weight
        if probability is not UNSET:
            field_dict["probability"] = probability

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        unit = d.pop("unit", UNSET)

        def _parse_target(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        target = _parse_target(d.pop("target", UNSET))

        _goal = d.pop("goal", UNSET)
        goal: MetricGoal | Unset
        if isinstance(_goal, Unset):
            goal = UNSET
        else:
            goal = MetricGoal(_goal)

        _scope = d.pop("scope", UNSET)
        scope: MetricScope | Unset
        if isinstance(_scope, Unset):
            scope = UNSET
        else:
            scope = MetricScope(_scope)

        weight = d.pop("weight", UNSET)

        def _parse_probability(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        probability = _parse_probability(d.pop("probability", UNSET))

        metric = cls(
            name=name,
            unit=unit,
            target=target,
            goal=goal,
            scope=scope,
            weight=weight,
            probability=probability,
        )

        return metric
