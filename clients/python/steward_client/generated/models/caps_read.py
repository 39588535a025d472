from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.caps import Caps


T = TypeVar("T", bound="CapsRead")


@_attrs_define
class CapsRead:
    """A tenant's caps, and what its runs of this month have used."""

    month: str
    """ The month, UTC. """
    caps: Caps
    """ Upper limits of cost (in the prices' currency) and duration (in seconds); null: none. """
    cost: float
    """ Cost of the month's runs, with the iterations that are under way. """
    seconds: float
    """ Sum of the iterations' seconds of the month's runs, likewise. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        month = self.month

        caps = self.caps.to_dict()

        cost = self.cost

        seconds = self.seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "month": month,
                "caps": caps,
                "cost": cost,
                "seconds": seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.caps import Caps  # noqa: PLC0415

        d = dict(src_dict)
        month = d.pop("month")

        caps = Caps.from_dict(d.pop("caps"))

        cost = d.pop("cost")

        seconds = d.pop("seconds")

        caps_read = cls(
            month=month,
            caps=caps,
            cost=cost,
            seconds=seconds,
        )

        caps_read.additional_properties = d
        return caps_read

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
