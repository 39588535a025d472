from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="Spread")


@_attrs_define
class Spread:
    """The distribution of some values."""

    smallest: float
    median: float
    mean: float
    largest: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        smallest = self.smallest

        median = self.median

        mean = self.mean

        largest = self.largest

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "smallest": smallest,
                "median": median,
                "mean": mean,
                "largest": largest,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        smallest = d.pop("smallest")

        median = d.pop("median")

        mean = d.pop("mean")

        largest = d.pop("largest")

        spread = cls(
            smallest=smallest,
            median=median,
            mean=mean,
            largest=largest,
        )

        spread.additional_properties = d
        return spread

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
