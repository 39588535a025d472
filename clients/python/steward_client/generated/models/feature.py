from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Feature")


@_attrs_define
class Feature:
    """A known number that the metrics depend on besides the allocation, for example the batch size."""

    name: str
    minimum: float
    maximum: float

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        minimum = self.minimum

        maximum = self.maximum

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "minimum": minimum,
                "maximum": maximum,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        minimum = d.pop("minimum")

        maximum = d.pop("maximum")

        feature = cls(
            name=name,
            minimum=minimum,
            maximum=maximum,
        )

        return feature
