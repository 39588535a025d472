from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.comparison_allocation_type_0 import ComparisonAllocationType0
    from ..models.estimate import Estimate


T = TypeVar("T", bound="Comparison")


@_attrs_define
class Comparison:
    """The reported iterations, had they run at other allocations; without figures where the model extrapolates."""

    allocation: ComparisonAllocationType0 | None
    """ The allocation that is held, by resource; null: what was recommended, which changes. """
    seconds: Estimate | None
    """ Seconds they would have taken; null: `unmeasured`. """
    cost: Estimate | None
    """ What they would have cost: hours times prices; null: `unmeasured`. """
    saved: Estimate | None
    """ That cost minus the run's: below 0 where the run cost more; null: `unmeasured`. """
    meets_targets: float | None
    """ Share of the models by which they would have met all targets; null without targets, and if `unmeasured`. """
    unmeasured: None | str | Unset = UNSET
    """ Why there are no figures: neither the model's samples nor the run reach this allocation. Null: they do. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.comparison_allocation_type_0 import ComparisonAllocationType0  # noqa: PLC0415
        from ..models.estimate import Estimate  # noqa: PLC0415

        allocation: dict[str, Any] | None
        if isinstance(self.allocation, ComparisonAllocationType0):
            allocation = self.allocation.to_dict()
        else:
            allocation = self.allocation

        seconds: dict[str, Any] | None
        if isinstance(self.seconds, Estimate):
            seconds = self.seconds.to_dict()
        else:
            seconds = self.seconds

        cost: dict[str, Any] | None
        if isinstance(self.cost, Estimate):
            cost = self.cost.to_dict()
        else:
            cost = self.cost

        saved: dict[str, Any] | None
        if isinstance(self.saved, Estimate):
            saved = self.saved.to_dict()
        else:
            saved = self.saved

        meets_targets: float | None
        meets_targets = self.meets_targets

        unmeasured: None | str | Unset
        if isinstance(self.unmeasured, Unset):
            unmeasured = UNSET
        else:
            unmeasured = self.unmeasured

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
        if unmeasured is not UNSET:
            field_dict["unmeasured"] = unmeasured

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

        def _parse_seconds(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                seconds_type_0 = Estimate.from_dict(data)

                return seconds_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        seconds = _parse_seconds(d.pop("seconds"))

        def _parse_cost(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                cost_type_0 = Estimate.from_dict(data)

                return cost_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        cost = _parse_cost(d.pop("cost"))

        def _parse_saved(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                saved_type_0 = Estimate.from_dict(data)

                return saved_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        saved = _parse_saved(d.pop("saved"))

        def _parse_meets_targets(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        meets_targets = _parse_meets_targets(d.pop("meets_targets"))

        def _parse_unmeasured(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        unmeasured = _parse_unmeasured(d.pop("unmeasured", UNSET))

        comparison = cls(
            allocation=allocation,
            seconds=seconds,
            cost=cost,
            saved=saved,
            meets_targets=meets_targets,
            unmeasured=unmeasured,
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
