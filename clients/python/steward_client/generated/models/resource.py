from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Resource")


@_attrs_define
class Resource:
    """A resource that is allocated in equal steps between two bounds, in ``unit``, with its price per unit and hour."""

    name: str
    minimum: float
    maximum: float
    unit: str | Unset = ""
    step: float | Unset = 1.0
    max_steps: int | Unset = 1
    initial: float | None | Unset = UNSET
    """ allocation before a model is known; default: the minimum """
    price_per_hour: float | Unset = 1.0
    change_seconds: float | Unset = 0.0

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        minimum = self.minimum

        maximum = self.maximum

        unit = self.unit

        step = self.step

        max_steps = self.max_steps

        initial: float | None | Unset
        if isinstance(self.initial, Unset):
            initial = UNSET
        else:
            initial = self.initial

        price_per_hour = self.price_per_hour

        change_seconds = self.change_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "minimum": minimum,
                "maximum": maximum,
            }
        )
        if unit is not UNSET:
            field_dict["unit"] = unit
        if step is not UNSET:
            field_dict["step"] = step
        if max_steps is not UNSET:
            field_dict["max_steps"] = max_steps
        if initial is not UNSET:
            field_dict["initial"] = initial
        if price_per_hour is not UNSET:
            field_dict["price_per_hour"] = price_per_hour
        if change_seconds is not UNSET:
            field_dict["change_seconds"] = change_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        minimum = d.pop("minimum")

        maximum = d.pop("maximum")

        unit = d.pop("unit", UNSET)

        step = d.pop("step", UNSET)

        max_steps = d.pop("max_steps", UNSET)

        def _parse_initial(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        initial = _parse_initial(d.pop("initial", UNSET))

        price_per_hour = d.pop("price_per_hour", UNSET)

        change_seconds = d.pop("change_seconds", UNSET)

        resource = cls(
            name=name,
            minimum=minimum,
            maximum=maximum,
            unit=unit,
            step=step,
            max_steps=max_steps,
            initial=initial,
            price_per_hour=price_per_hour,
            change_seconds=change_seconds,
        )

        return resource
