from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadSamplesJsonBodyType1SamplesItemBatchesItem")


@_attrs_define
class UploadSamplesJsonBodyType1SamplesItemBatchesItem:
    variant: str
    batch: int
    seconds: float
    server: str | Unset = UNSET
    """ Server class; optional if the workload has only one. """
    cores: float | Unset = UNSET
    """ Default: the cores of the server class. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        variant = self.variant

        batch = self.batch

        seconds = self.seconds

        server = self.server

        cores = self.cores

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "variant": variant,
                "batch": batch,
                "seconds": seconds,
            }
        )
        if server is not UNSET:
            field_dict["server"] = server
        if cores is not UNSET:
            field_dict["cores"] = cores

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        variant = d.pop("variant")

        batch = d.pop("batch")

        seconds = d.pop("seconds")

        server = d.pop("server", UNSET)

        cores = d.pop("cores", UNSET)

        upload_samples_json_body_type_1_samples_item_batches_item = cls(
            variant=variant,
            batch=batch,
            seconds=seconds,
            server=server,
            cores=cores,
        )

        upload_samples_json_body_type_1_samples_item_batches_item.additional_properties = d
        return upload_samples_json_body_type_1_samples_item_batches_item

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
