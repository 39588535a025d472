from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.adaptation_read import AdaptationRead
    from ..models.drift_response import DriftResponse


T = TypeVar("T", bound="DriftRead")


@_attrs_define
class DriftRead:
    """How a workload responds to drift, and its latest adaptations, newest first."""

    workload: str
    response: DriftResponse
    """ How a workload responds to drift, which is detected in any case. """
    adaptations: list[AdaptationRead]
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        response = self.response.to_dict()

        adaptations = []
        for adaptations_item_data in self.adaptations:
            adaptations_item = adaptations_item_data.to_dict()
            adaptations.append(adaptations_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "response": response,
                "adaptations": adaptations,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.adaptation_read import AdaptationRead  # noqa: PLC0415
        from ..models.drift_response import DriftResponse  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        response = DriftResponse.from_dict(d.pop("response"))

        adaptations = []
        _adaptations = d.pop("adaptations")
        for adaptations_item_data in _adaptations:
            adaptations_item = AdaptationRead.from_dict(adaptations_item_data)

            adaptations.append(adaptations_item)

        drift_read = cls(
            workload=workload,
            response=response,
            adaptations=adaptations,
        )

        drift_read.additional_properties = d
        return drift_read

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
