from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.audit_read_detail_type_0 import AuditReadDetailType0


T = TypeVar("T", bound="AuditRead")


@_attrs_define
class AuditRead:
    """One audit record: who did what to which object, when, and from which address."""

    id: str
    at: datetime.datetime
    tenant: str
    actor: str
    """ `key:<id>`, `subject:<name>` of an identity provider, `anybody` if no keys are required, or `steward` for
    its own command line and workers. """
    action: str
    target: str
    address: None | str
    """ Address that the request came from. """
    detail: AuditReadDetailType0 | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.audit_read_detail_type_0 import AuditReadDetailType0  # noqa: PLC0415

        id = self.id

        at = self.at.isoformat()

        tenant = self.tenant

        actor = self.actor

        action = self.action

        target = self.target

        address: None | str
        address = self.address

        detail: dict[str, Any] | None
        if isinstance(self.detail, AuditReadDetailType0):
            detail = self.detail.to_dict()
        else:
            detail = self.detail

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "at": at,
                "tenant": tenant,
                "actor": actor,
                "action": action,
                "target": target,
                "address": address,
                "detail": detail,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.audit_read_detail_type_0 import AuditReadDetailType0  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        tenant = d.pop("tenant")

        actor = d.pop("actor")

        action = d.pop("action")

        target = d.pop("target")

        def _parse_address(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        address = _parse_address(d.pop("address"))

        def _parse_detail(data: object) -> AuditReadDetailType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                detail_type_0 = AuditReadDetailType0.from_dict(data)

                return detail_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(AuditReadDetailType0 | None, data)

        detail = _parse_detail(d.pop("detail"))

        audit_read = cls(
            id=id,
            at=at,
            tenant=tenant,
            actor=actor,
            action=action,
            target=target,
            address=address,
            detail=detail,
        )

        audit_read.additional_properties = d
        return audit_read

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
