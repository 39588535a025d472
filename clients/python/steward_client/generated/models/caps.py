from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Caps")


@_attrs_define
class Caps:
    """Upper limits of cost (in the prices' currency) and duration (in seconds); null: none."""

    cost: float | None | Unset = UNSET
    """ Limit of the cost, in the currency of prices. """
    seconds: float | None | Unset = UNSET
    """ Limit of the sum of the iterations' seconds. """

    def to_dict(self) -> dict[str, Any]:
        cost: float | None | Unset
        if isinstance(self.cost, Unset):
            cost = UNSET
        else:
            cost = self.cost

        seconds: float | None | Unset
        if isinstance(self.seconds, Unset):
            seconds = UNSET
        else:
            seconds = self.seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if cost is not UNSET:
            field_dict["cost"] = cost
        if seconds is not UNSET:
            field_dict["seconds"] = seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_cost(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        cost = _parse_cost(d.pop("cost", UNSET))

        def _parse_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds = _parse_seconds(d.pop("seconds", UNSET))

        caps = cls(
            cost=cost,
            seconds=seconds,
        )

        return caps
