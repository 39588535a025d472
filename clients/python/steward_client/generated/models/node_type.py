from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="NodeType")


@_attrs_define
class NodeType:
    """Identical nodes, of which ``minimum`` to ``maximum`` are rented at a time.

    A task runs on one node and shares it while processors and memory last; a batch machine whose jobs span hosts is
    one node with all of its processors.

    """

    name: str
    processors: int
    maximum: int
    memory_gb: float | None | Unset = UNSET
    """ memory of a node; null: no limit """
    speed: float | Unset = 1.0
    """ a task that takes t seconds at speed 1 takes t / speed """
    price_per_hour: float | Unset = 0.0
    """ price of one node while rented """
    billing_seconds: float | Unset = 1.0
    """ rented time is billed in whole multiples of this """
    startup_seconds: float | Unset = 0.0
    """ time from requesting a node to its first task """
    minimum: int | Unset = 0
    bandwidth_mbps: float | None | Unset = UNSET
    """ megabytes per second to and from other nodes; null: transfers take no time """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        processors = self.processors

        maximum = self.maximum

        memory_gb: float | None | Unset
        if isinstance(self.memory_gb, Unset):
            memory_gb = UNSET
        else:
            memory_gb = self.memory_gb

        speed = self.speed

        price_per_hour = self.price_per_hour

        billing_seconds = self.billing_seconds

        startup_seconds = self.startup_seconds

        minimum = self.minimum

        bandwidth_mbps: float | None | Unset
        if isinstance(self.bandwidth_mbps, Unset):
            bandwidth_mbps = UNSET
        else:
            bandwidth_mbps = self.bandwidth_mbps

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "processors": processors,
                "maximum": maximum,
            }
        )
        if memory_gb is not UNSET:
            field_dict["memory_gb"] = memory_gb
        if speed is not UNSET:
            field_dict["speed"] = speed
        if price_per_hour is not UNSET:
            field_dict["price_per_hour"] = price_per_hour
        if billing_seconds is not UNSET:
            field_dict["billing_seconds"] = billing_seconds
        if startup_seconds is not UNSET:
            field_dict["startup_seconds"] = startup_seconds
        if minimum is not UNSET:
            field_dict["minimum"] = minimum
        if bandwidth_mbps is not UNSET:
            field_dict["bandwidth_mbps"] = bandwidth_mbps

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        processors = d.pop("processors")

        maximum = d.pop("maximum")

        def _parse_memory_gb(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        memory_gb = _parse_memory_gb(d.pop("memory_gb", UNSET))

        speed = d.pop("speed", UNSET)

        price_per_hour = d.pop("price_per_hour", UNSET)

        billing_seconds = d.pop("billing_seconds", UNSET)

        startup_seconds = d.pop("startup_seconds", UNSET)

        minimum = d.pop("minimum", UNSET)

        def _parse_bandwidth_mbps(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        bandwidth_mbps = _parse_bandwidth_mbps(d.pop("bandwidth_mbps", UNSET))

        node_type = cls(
            name=name,
            processors=processors,
            maximum=maximum,
            memory_gb=memory_gb,
            speed=speed,
            price_per_hour=price_per_hour,
            billing_seconds=billing_seconds,
            startup_seconds=startup_seconds,
            minimum=minimum,
            bandwidth_mbps=bandwidth_mbps,
        )

        return node_type
