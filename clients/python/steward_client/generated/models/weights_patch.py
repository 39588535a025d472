from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="WeightsPatch")


@_attrs_define
class WeightsPatch:
    """New weights of the reward's terms; what is left out stays."""

    sla: float | None | Unset = UNSET
    cost: float | None | Unset = UNSET
    change: float | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        sla: float | None | Unset
        if isinstance(self.sla, Unset):
            sla = UNSET
        else:
            sla = self.sla

        cost: float | None | Unset
        if isinstance(self.cost, Unset):
            cost = UNSET
        else:
            cost = self.cost

        change: float | None | Unset
        if isinstance(self.change, Unset):
            change = UNSET
        else:
            change = self.change

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if sla is not UNSET:
            field_dict["sla"] = sla
        if cost is not UNSET:
            field_dict["cost"] = cost
        if change is not UNSET:
            field_dict["change"] = change

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_sla(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        sla = _parse_sla(d.pop("sla", UNSET))

        def _parse_cost(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        cost = _parse_cost(d.pop("cost", UNSET))

        def _parse_change(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        change = _parse_change(d.pop("change", UNSET))

        weights_patch = cls(
            sla=sla,
            cost=cost,
            change=change,
        )

        return weights_patch
