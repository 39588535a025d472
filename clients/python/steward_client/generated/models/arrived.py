from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Arrived")


@_attrs_define
class Arrived:
    """A request that arrived."""

    user: str
    at: float
    id: None | str | Unset = UNSET
    """ null: a number is assigned; a name must not begin with `#` """

    def to_dict(self) -> dict[str, Any]:
        user = self.user

        at = self.at

        id: None | str | Unset
        if isinstance(self.id, Unset):
            id = UNSET
        else:
            id = self.id

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "user": user,
                "at": at,
            }
        )
        if id is not UNSET:
            field_dict["id"] = id

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        user = d.pop("user")

        at = d.pop("at")

        def _parse_id(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        id = _parse_id(d.pop("id", UNSET))

        arrived = cls(
            user=user,
            at=at,
            id=id,
        )

        return arrived
