from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Convergence")


@_attrs_define
class Convergence:
    """When the remaining gain of a job that reports its loss or metric is small; its GPUs are then halved by window.

    No job is limited before nine others of its application have ended and are in the domain model.

    """

    tolerance: float | Unset = 0.01
    """ share of the level reached below which the remaining gain is small """
    doubt: float | Unset = 0.5
    """ half-widths of the 90 % interval added to the remaining gain """
    window_seconds: float | Unset = 3600.0
    """ time between halvings """

    def to_dict(self) -> dict[str, Any]:
        tolerance = self.tolerance

        doubt = self.doubt

        window_seconds = self.window_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if tolerance is not UNSET:
            field_dict["tolerance"] = tolerance
        if doubt is not UNSET:
            field_dict["doubt"] = doubt
        if window_seconds is not UNSET:
            field_dict["window_seconds"] = window_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        tolerance = d.pop("tolerance", UNSET)

        doubt = d.pop("doubt", UNSET)

        window_seconds = d.pop("window_seconds", UNSET)

        convergence = cls(
            tolerance=tolerance,
            doubt=doubt,
            window_seconds=window_seconds,
        )

        return convergence
