from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadSamplesJsonBodyType1SamplesItemRequestsItem")


@_attrs_define
class UploadSamplesJsonBodyType1SamplesItemRequestsItem:
    time: float | str
    """ Seconds since 1970 or another origin, or RFC 3339 in UTC. """
    user: str | Unset = UNSET
    """ Optional if the workload has only one user. """
    size: float | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        time: float | str
        time = self.time

        user = self.user

        size = self.size

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "time": time,
            }
        )
        if user is not UNSET:
            field_dict["user"] = user
        if size is not UNSET:
            field_dict["size"] = size

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_time(data: object) -> float | str:
            return cast(float | str, data)

        time = _parse_time(d.pop("time"))

        user = d.pop("user", UNSET)

        size = d.pop("size", UNSET)

        upload_samples_json_body_type_1_samples_item_requests_item = cls(
            time=time,
            user=user,
            size=size,
        )

        upload_samples_json_body_type_1_samples_item_requests_item.additional_properties = d
        return upload_samples_json_body_type_1_samples_item_requests_item

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
