from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item_segments_item_allocation import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem")


@_attrs_define
class UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem:
    allocation: UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation
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
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item_segments_item_allocation import (
            UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation,  # noqa: PLC0415
        )

        d = dict(src_dict)
        allocation = UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItemAllocation.from_dict(
            d.pop("allocation")
        )

        seconds = d.pop("seconds")

        upload_samples_json_body_type_2_samples_item_reports_item_segments_item = cls(
            allocation=allocation,
            seconds=seconds,
        )

        upload_samples_json_body_type_2_samples_item_reports_item_segments_item.additional_properties = d
        return upload_samples_json_body_type_2_samples_item_reports_item_segments_item

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
