from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="QueueChange")


@_attrs_define
class QueueChange:
    """Changes to a queue; omitted fields stay as they are."""

    weight: float | None | Unset = UNSET
    ageing_seconds: float | None | Unset = UNSET
    """ explicit null: never """

    def to_dict(self) -> dict[str, Any]:
        weight: float | None | Unset
        if isinstance(self.weight, Unset):
            weight = UNSET
        else:
            weight = self.weight

        ageing_seconds: float | None | Unset
        if isinstance(self.ageing_seconds, Unset):
            ageing_seconds = UNSET
        else:
            ageing_seconds = self.ageing_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if weight is not UNSET:
            field_dict["weight"] = weight
        if ageing_seconds is not UNSET:
            field_dict["ageing_seconds"] = ageing_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_weight(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        weight = _parse_weight(d.pop("weight", UNSET))

        def _parse_ageing_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        ageing_seconds = _parse_ageing_seconds(d.pop("ageing_seconds", UNSET))

        queue_change = cls(
            weight=weight,
            ageing_seconds=ageing_seconds,
        )

        return queue_change
