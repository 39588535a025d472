from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.retention import Retention


T = TypeVar("T", bound="RetentionRead")


@_attrs_define
class RetentionRead:
    """How many days a workload's data is kept: its own settings, and those in effect."""

    workload: str
    given: Retention
    """ How many days a workload's data is kept before it is archived and deleted.

    What is active, or what something active depends on, is never deleted. """
    effective: Retention
    """ How many days a workload's data is kept before it is archived and deleted.

    What is active, or what something active depends on, is never deleted. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        given = self.given.to_dict()

        effective = self.effective.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "given": given,
                "effective": effective,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.retention import Retention  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        given = Retention.from_dict(d.pop("given"))

        effective = Retention.from_dict(d.pop("effective"))

        retention_read = cls(
            workload=workload,
            given=given,
            effective=effective,
        )

        retention_read.additional_properties = d
        return retention_read

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
