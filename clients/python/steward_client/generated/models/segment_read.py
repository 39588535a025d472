from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.segment_read_allocation import SegmentReadAllocation


T = TypeVar("T", bound="SegmentRead")


@_attrs_define
class SegmentRead:
    """A part of an iteration at one allocation (amounts by resource), and its duration in seconds."""

    allocation: SegmentReadAllocation
    seconds: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        seconds = self.seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allocation": allocation,
                "seconds": seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.segment_read_allocation import SegmentReadAllocation  # noqa: PLC0415

        d = dict(src_dict)
        allocation = SegmentReadAllocation.from_dict(d.pop("allocation"))

        seconds = d.pop("seconds")

        segment_read = cls(
            allocation=allocation,
            seconds=seconds,
        )

        segment_read.additional_properties = d
        return segment_read

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
