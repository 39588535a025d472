from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_1_samples_item_batches_item import (
        UploadSamplesJsonBodyType1SamplesItemBatchesItem,
    )
    from ..models.upload_samples_json_body_type_1_samples_item_requests_item import (
        UploadSamplesJsonBodyType1SamplesItemRequestsItem,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType1SamplesItem")


@_attrs_define
class UploadSamplesJsonBodyType1SamplesItem:
    execution: str
    requests: list[UploadSamplesJsonBodyType1SamplesItemRequestsItem] | Unset = UNSET
    batches: list[UploadSamplesJsonBodyType1SamplesItemBatchesItem] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        execution = self.execution

        requests: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.requests, Unset):
            requests = []
            for requests_item_data in self.requests:
                requests_item = requests_item_data.to_dict()
                requests.append(requests_item)

        batches: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.batches, Unset):
            batches = []
            for batches_item_data in self.batches:
                batches_item = batches_item_data.to_dict()
                batches.append(batches_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "execution": execution,
            }
        )
        if requests is not UNSET:
            field_dict["requests"] = requests
        if batches is not UNSET:
            field_dict["batches"] = batches

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_samples_json_body_type_1_samples_item_batches_item import (
            UploadSamplesJsonBodyType1SamplesItemBatchesItem,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_1_samples_item_requests_item import (
            UploadSamplesJsonBodyType1SamplesItemRequestsItem,  # noqa: PLC0415
        )

        d = dict(src_dict)
        execution = d.pop("execution")

        _requests = d.pop("requests", UNSET)
        requests: list[UploadSamplesJsonBodyType1SamplesItemRequestsItem] | Unset = UNSET
        if _requests is not UNSET:
            requests = []
            for requests_item_data in _requests:
                requests_item = UploadSamplesJsonBodyType1SamplesItemRequestsItem.from_dict(requests_item_data)

                requests.append(requests_item)

        _batches = d.pop("batches", UNSET)
        batches: list[UploadSamplesJsonBodyType1SamplesItemBatchesItem] | Unset = UNSET
        if _batches is not UNSET:
            batches = []
            for batches_item_data in _batches:
                batches_item = UploadSamplesJsonBodyType1SamplesItemBatchesItem.from_dict(batches_item_data)

                batches.append(batches_item)

        upload_samples_json_body_type_1_samples_item = cls(
            execution=execution,
            requests=requests,
            batches=batches,
        )

        upload_samples_json_body_type_1_samples_item.additional_properties = d
        return upload_samples_json_body_type_1_samples_item

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
