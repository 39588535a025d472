from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="PaceShift")


@_attrs_define
class PaceShift:
    """From some iteration on, all measurements change by a factor."""

    probability: float
    """ share of runs in which it happens """
    factor: list[float] | Unset = UNSET
    """ lowest and highest factor, drawn log-uniformly """

    def to_dict(self) -> dict[str, Any]:
        probability = self.probability

        factor: list[float] | Unset = UNSET
        if not isinstance(self.factor, Unset):
            factor = []
            for factor_item_data in self.factor:
                factor_item: float
                factor_item = factor_item_data
                factor.append(factor_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "probability": probability,
            }
        )
        if factor is not UNSET:
            field_dict["factor"] = factor

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        probability = d.pop("probability")

        _factor = d.pop("factor", UNSET)
        factor: list[float] | Unset = UNSET
        if _factor is not UNSET:
            factor = []
            for factor_item_data in _factor:

                def _parse_factor_item(data: object) -> float:
                    return cast(float, data)

                factor_item = _parse_factor_item(factor_item_data)

                factor.append(factor_item)

        pace_shift = cls(
            probability=probability,
            factor=factor,
        )

        return pace_shift
