from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_2_samples_item import (
        UploadSamplesJsonBodyType2SamplesItem,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType2")


@_attrs_define
class UploadSamplesJsonBodyType2:
    samples: list[UploadSamplesJsonBodyType2SamplesItem]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        samples = []
        for samples_item_data in self.samples:
            samples_item = samples_item_data.to_dict()
            samples.append(samples_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "samples": samples,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_samples_json_body_type_2_samples_item import (
            UploadSamplesJsonBodyType2SamplesItem,  # noqa: PLC0415
        )

        d = dict(src_dict)
        samples = []
        _samples = d.pop("samples")
        for samples_item_data in _samples:
            samples_item = UploadSamplesJsonBodyType2SamplesItem.from_dict(samples_item_data)

            samples.append(samples_item)

        upload_samples_json_body_type_2 = cls(
            samples=samples,
        )

        upload_samples_json_body_type_2.additional_properties = d
        return upload_samples_json_body_type_2

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
