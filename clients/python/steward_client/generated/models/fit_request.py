from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FitRequest")


@_attrs_define
class FitRequest:
    """Options of a fit; all are optional."""

    seed: int | Unset = 0
    """ The same seed and samples give the same result. """
    priority: int | Unset = 0
    """ A tenant's waiting jobs start in order of priority, highest first; the order among tenants ignores it. """

    def to_dict(self) -> dict[str, Any]:
        seed = self.seed

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if seed is not UNSET:
            field_dict["seed"] = seed
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        seed = d.pop("seed", UNSET)

        priority = d.pop("priority", UNSET)

        fit_request = cls(
            seed=seed,
            priority=priority,
        )

        return fit_request
