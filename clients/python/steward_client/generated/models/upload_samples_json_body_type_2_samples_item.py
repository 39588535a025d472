from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item import (
        UploadSamplesJsonBodyType2SamplesItemReportsItem,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType2SamplesItem")


@_attrs_define
class UploadSamplesJsonBodyType2SamplesItem:
    execution: str
    reports: list[UploadSamplesJsonBodyType2SamplesItemReportsItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        execution = self.execution

        reports = []
        for reports_item_data in self.reports:
            reports_item = reports_item_data.to_dict()
            reports.append(reports_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "execution": execution,
                "reports": reports,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item import (
            UploadSamplesJsonBodyType2SamplesItemReportsItem,  # noqa: PLC0415
        )

        d = dict(src_dict)
        execution = d.pop("execution")

        reports = []
        _reports = d.pop("reports")
        for reports_item_data in _reports:
            reports_item = UploadSamplesJsonBodyType2SamplesItemReportsItem.from_dict(reports_item_data)

            reports.append(reports_item)

        upload_samples_json_body_type_2_samples_item = cls(
            execution=execution,
            reports=reports,
        )

        upload_samples_json_body_type_2_samples_item.additional_properties = d
        return upload_samples_json_body_type_2_samples_item

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
