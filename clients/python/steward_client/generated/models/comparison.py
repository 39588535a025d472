from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.comparison_allocation_type_0 import ComparisonAllocationType0
    from ..models.estimate import Estimate


T = TypeVar("T", bound="Comparison")


@_attrs_define
class Comparison:
    """The reported iterations, had they run at other allocations."""

    allocation: ComparisonAllocationType0 | None
    """ The allocation that is held, by resource; null: what was recommended, which changes. """
    seconds: Estimate
    """ A value by the domain model, with an interval. """
    cost: Estimate
    """ A value by the domain model, with an interval. """
    saved: Estimate
    """ A value by the domain model, with an interval. """
    meets_targets: float | None
    """ Share of the models by which they would have met all targets; null without targets. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.comparison_allocation_type_0 import ComparisonAllocationType0  # noqa: PLC0415

        allocation: dict[str, Any] | None
        if isinstance(self.allocation, ComparisonAllocationType0):
            allocation = self.allocation.to_dict()
        else:
            allocation = self.allocation

        seconds = self.seconds.to_dict()

        cost = self.cost.to_dict()

        saved = self.saved.to_dict()

        meets_targets: float | None
        meets_targets = self.meets_targets

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allocation": allocation,
                "seconds": seconds,
                "cost": cost,
                "saved": saved,
                "meets_targets": meets_targets,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.comparison_allocation_type_0 import ComparisonAllocationType0  # noqa: PLC0415
        from ..models.estimate import Estimate  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_allocation(data: object) -> ComparisonAllocationType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                allocation_type_0 = ComparisonAllocationType0.from_dict(data)

                return allocation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ComparisonAllocationType0 | None, data)

        allocation = _parse_allocation(d.pop("allocation"))

        seconds = Estimate.from_dict(d.pop("seconds"))

        cost = Estimate.from_dict(d.pop("cost"))

        saved = Estimate.from_dict(d.pop("saved"))

        def _parse_meets_targets(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        meets_targets = _parse_meets_targets(d.pop("meets_targets"))

        comparison = cls(
            allocation=allocation,
            seconds=seconds,
            cost=cost,
            saved=saved,
            meets_targets=meets_targets,
        )

        comparison.additional_properties = d
        return comparison

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
