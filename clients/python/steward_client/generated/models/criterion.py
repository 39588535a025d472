from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Criterion")


@_attrs_define
class Criterion:
    """Limit on one simulated iteration: the lesser of a duration and a share of the real iteration."""

    max_seconds: float | Unset = 0.001
    max_fraction: float | Unset = 0.001

    def to_dict(self) -> dict[str, Any]:
        max_seconds = self.max_seconds

        max_fraction = self.max_fraction

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if max_seconds is not UNSET:
            field_dict["max_seconds"] = max_seconds
        if max_fraction is not UNSET:
            field_dict["max_fraction"] = max_fraction

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        max_seconds = d.pop("max_seconds", UNSET)

        max_fraction = d.pop("max_fraction", UNSET)

        criterion = cls(
            max_seconds=max_seconds,
            max_fraction=max_fraction,
        )

        return criterion
