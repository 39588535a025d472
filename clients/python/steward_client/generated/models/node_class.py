from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NodeClass")


@_attrs_define
class NodeClass:
    """A class of identical nodes: their number, GPUs, relative speed, and price per hour (of a GPU)."""

    name: str
    count: int
    gpus: int
    """ GPUs per node """
    speed: float | Unset = 1.0
    """ relative speed of a GPU """
    price_per_hour: float | Unset = 0.0
    """ price of a GPU in use """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        count = self.count

        gpus = self.gpus

        speed = self.speed

        price_per_hour = self.price_per_hour

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "count": count,
                "gpus": gpus,
            }
        )
        if speed is not UNSET:
            field_dict["speed"] = speed
        if price_per_hour is not UNSET:
            field_dict["price_per_hour"] = price_per_hour

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        count = d.pop("count")

        gpus = d.pop("gpus")

        speed = d.pop("speed", UNSET)

        price_per_hour = d.pop("price_per_hour", UNSET)

        node_class = cls(
            name=name,
            count=count,
            gpus=gpus,
            speed=speed,
            price_per_hour=price_per_hour,
        )

        return node_class
