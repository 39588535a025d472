from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="BatchStart")


@_attrs_define
class BatchStart:
    """A batch to start now, of the user's oldest requests."""

    server: str
    """ Class and index, starting at 0. """
    user: str
    variant: str
    batch: int
    """ Chosen batch size; the smallest also takes fewer requests. """
    requests: list[str]
    """ Names; unnamed requests have a number, such as `#17`. """
    expected_seconds: float | None
    """ Includes loading the variant; null without a domain model. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        server = self.server

        user = self.user

        variant = self.variant

        batch = self.batch

        requests = self.requests

        expected_seconds: float | None
        expected_seconds = self.expected_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "server": server,
                "user": user,
                "variant": variant,
                "batch": batch,
                "requests": requests,
                "expected_seconds": expected_seconds,
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

        requests = cast(list[str], d.pop("requests"))

        def _parse_expected_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        expected_seconds = _parse_expected_seconds(d.pop("expected_seconds"))

        batch_start = cls(
            server=server,
            user=user,
            variant=variant,
            batch=batch,
            requests=requests,
            expected_seconds=expected_seconds,
        )

        batch_start.additional_properties = d
        return batch_start

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
