from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="Started")


@_attrs_define
class Started:
    """A batch of the user's oldest requests that the client itself started; only in carried runs."""

    server: str
    user: str
    variant: str
    batch: int
    at: float

    def to_dict(self) -> dict[str, Any]:
        server = self.server

        user = self.user

        variant = self.variant

        batch = self.batch

        at = self.at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "server": server,
                "user": user,
                "variant": variant,
                "batch": batch,
                "at": at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        server = d.pop("server")

        user = d.pop("user")

        variant = d.pop("variant")

        batch = d.pop("batch")

        at = d.pop("at")

        started = cls(
            server=server,
            user=user,
            variant=variant,
            batch=batch,
            at=at,
        )

        return started
