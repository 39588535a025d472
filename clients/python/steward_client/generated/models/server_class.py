from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ServerClass")


@_attrs_define
class ServerClass:
    """Identical servers, of which ``minimum`` to ``maximum`` are on; each serves one batch at a time."""

    name: str
    maximum: int
    minimum: int | Unset = 1
    cores: float | Unset = 1.0
    """ cores or GPUs of one server """
    price_per_hour: float | Unset = 0.0
    """ price of one server while on or starting """
    startup_seconds: float | Unset = 0.0
    """ time from requesting a server to its first batch """
    switch_seconds: float | Unset = 0.0
    """ time to load another variant before a batch """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        maximum = self.maximum

        minimum = self.minimum

        cores = self.cores

        price_per_hour = self.price_per_hour

        startup_seconds = self.startup_seconds

        switch_seconds = self.switch_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "maximum": maximum,
            }
        )
        if minimum is not UNSET:
            field_dict["minimum"] = minimum
        if cores is not UNSET:
            field_dict["cores"] = cores
        if price_per_hour is not UNSET:
            field_dict["price_per_hour"] = price_per_hour
        if startup_seconds is not UNSET:
            field_dict["startup_seconds"] = startup_seconds
        if switch_seconds is not UNSET:
            field_dict["switch_seconds"] = switch_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        maximum = d.pop("maximum")

        minimum = d.pop("minimum", UNSET)

        cores = d.pop("cores", UNSET)

        price_per_hour = d.pop("price_per_hour", UNSET)

        startup_seconds = d.pop("startup_seconds", UNSET)

        switch_seconds = d.pop("switch_seconds", UNSET)

        server_class = cls(
            name=name,
            maximum=maximum,
            minimum=minimum,
            cores=cores,
            price_per_hour=price_per_hour,
            startup_seconds=startup_seconds,
            switch_seconds=switch_seconds,
        )

        return server_class
