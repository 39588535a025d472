from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.shift_factors import ShiftFactors


T = TypeVar("T", bound="Shift")


@_attrs_define
class Shift:
    """Size of a drift, so that earlier measurements can still be used."""

    factors: ShiftFactors
    """ By stream, as named in a run's `drift`: what is measured now over what was measured before. """
    recent: list[str] | Unset = UNSET
    """ Executions measured since; all others were measured before. """

    def to_dict(self) -> dict[str, Any]:
        factors = self.factors.to_dict()

        recent: list[str] | Unset = UNSET
        if not isinstance(self.recent, Unset):
            recent = self.recent

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "factors": factors,
            }
        )
        if recent is not UNSET:
            field_dict["recent"] = recent

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shift_factors import ShiftFactors  # noqa: PLC0415

        d = dict(src_dict)
        factors = ShiftFactors.from_dict(d.pop("factors"))

        recent = cast(list[str], d.pop("recent", UNSET))

        shift = cls(
            factors=factors,
            recent=recent,
        )

        return shift
