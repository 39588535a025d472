from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.response_quality import ResponseQuality


T = TypeVar("T", bound="User")


@_attrs_define
class User:
    """A user, whose requests wait in a separate queue."""

    name: str
    quality: ResponseQuality
    """ Value of an answer by its delay: full until ``full_until``, zero from ``zero_at`` seconds on. """
    weight: float | Unset = 1.0
    """ relative weight of its requests """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        quality = self.quality.to_dict()

        weight = self.weight

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "quality": quality,
            }
        )
        if weight is not UNSET:
            field_dict["weight"] = weight

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.response_quality import ResponseQuality  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        quality = ResponseQuality.from_dict(d.pop("quality"))

        weight = d.pop("weight", UNSET)

        user = cls(
            name=name,
            quality=quality,
            weight=weight,
        )

        return user
