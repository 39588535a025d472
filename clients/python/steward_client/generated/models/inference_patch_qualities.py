from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.response_quality import ResponseQuality


T = TypeVar("T", bound="InferencePatchQualities")


@_attrs_define
class InferencePatchQualities:
    """New response qualities, by user."""

    additional_properties: dict[str, ResponseQuality] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:

        field_dict: dict[str, Any] = {}
        for prop_name, prop in self.additional_properties.items():
            field_dict[prop_name] = prop.to_dict()

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.response_quality import ResponseQuality  # noqa: PLC0415

        d = dict(src_dict)
        inference_patch_qualities = cls()

        additional_properties = {}
        for prop_name, prop_dict in d.items():
            additional_property = ResponseQuality.from_dict(prop_dict)

            additional_properties[prop_name] = additional_property

        inference_patch_qualities.additional_properties = additional_properties
        return inference_patch_qualities

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> ResponseQuality:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: ResponseQuality) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
