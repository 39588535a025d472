from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="LostCapacity")


@_attrs_define
class LostCapacity:
    """From some iteration on, a part of the resources is unavailable."""

    probability: float
    """ share of runs in which it happens """
    left: list[float] | Unset = UNSET
    """ lowest and highest remaining share of each resource's range above its minimum """

    def to_dict(self) -> dict[str, Any]:
        probability = self.probability

        left: list[float] | Unset = UNSET
        if not isinstance(self.left, Unset):
            left = []
            for left_item_data in self.left:
                left_item: float
                left_item = left_item_data
                left.append(left_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "probability": probability,
            }
        )
        if left is not UNSET:
            field_dict["left"] = left

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        probability = d.pop("probability")

        _left = d.pop("left", UNSET)
        left: list[float] | Unset = UNSET
        if _left is not UNSET:
            left = []
            for left_item_data in _left:

                def _parse_left_item(data: object) -> float:
                    return cast(float, data)

                left_item = _parse_left_item(left_item_data)

                left.append(left_item)

        lost_capacity = cls(
            probability=probability,
            left=left,
        )

        return lost_capacity
