from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Weights")


@_attrs_define
class Weights:
    """Relative weights, without unit, of the three terms of the reward."""

    sla: float | Unset = 1.0
    cost: float | Unset = 0.1
    change: float | Unset = 0.01

    def to_dict(self) -> dict[str, Any]:
        sla = self.sla

        cost = self.cost

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
        sla = d.pop("sla", UNSET)

        cost = d.pop("cost", UNSET)

        change = d.pop("change", UNSET)

        weights = cls(
            sla=sla,
            cost=cost,
            change=change,
        )

        return weights
