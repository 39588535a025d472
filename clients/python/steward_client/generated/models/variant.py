from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Variant")


@_attrs_define
class Variant:
    """A model that can answer a request; all variants answer the same requests, with different accuracy."""

    name: str
    accuracy: float
    """ share of correct answers, e.g. top-1 """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        accuracy = self.accuracy

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "accuracy": accuracy,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        accuracy = d.pop("accuracy")

        variant = cls(
            name=name,
            accuracy=accuracy,
        )

        return variant
