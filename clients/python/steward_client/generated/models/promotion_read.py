from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="PromotionRead")


@_attrs_define
class PromotionRead:
    """The champion after a promotion or rollback; null stands for the heuristics."""

    workload: str
    role: str
    champion: int | None
    previous: int | None
    """ Version that served before. """
    reason: str
    revision: int
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        role = self.role

        champion: int | None
        champion = self.champion

        previous: int | None
        previous = self.previous

        reason = self.reason

        revision = self.revision

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "role": role,
                "champion": champion,
                "previous": previous,
                "reason": reason,
                "revision": revision,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        workload = d.pop("workload")

        role = d.pop("role")

        def _parse_champion(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        champion = _parse_champion(d.pop("champion"))

        def _parse_previous(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        previous = _parse_previous(d.pop("previous"))

        reason = d.pop("reason")

        revision = d.pop("revision")

        promotion_read = cls(
            workload=workload,
            role=role,
            champion=champion,
            previous=previous,
            reason=reason,
            revision=revision,
        )

        promotion_read.additional_properties = d
        return promotion_read

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
