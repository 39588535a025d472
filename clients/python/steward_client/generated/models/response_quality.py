from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.response_quality_shape import ResponseQualityShape
from ..types import UNSET, Unset

T = TypeVar("T", bound="ResponseQuality")


@_attrs_define
class ResponseQuality:
    """Value of an answer by its delay: full until ``full_until``, zero from ``zero_at`` seconds on."""

    full_until: float
    zero_at: float
    shape: ResponseQualityShape | Unset = ResponseQualityShape.LINEAR

    def to_dict(self) -> dict[str, Any]:
        full_until = self.full_until

        zero_at = self.zero_at

        shape: str | Unset = UNSET
        if not isinstance(self.shape, Unset):
            shape = self.shape.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "full_until": full_until,
                "zero_at": zero_at,
            }
        )
        if shape is not UNSET:
            field_dict["shape"] = shape

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        full_until = d.pop("full_until")

        zero_at = d.pop("zero_at")

        _shape = d.pop("shape", UNSET)
        shape: ResponseQualityShape | Unset
        if isinstance(_shape, Unset):
            shape = UNSET
        else:
            shape = ResponseQualityShape(_shape)

        response_quality = cls(
            full_until=full_until,
            zero_at=zero_at,
            shape=shape,
        )

        return response_quality
