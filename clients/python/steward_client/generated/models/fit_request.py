from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="FitRequest")


@_attrs_define
class FitRequest:
    """What may be said about a fit; all of it is optional."""

    seed: int | Unset = 0
    """ Same seed, same samples: the same result. """

    def to_dict(self) -> dict[str, Any]:
        seed = self.seed

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if seed is not UNSET:
            field_dict["seed"] = seed

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        seed = d.pop("seed", UNSET)

        fit_request = cls(
            seed=seed,
        )

        return fit_request
