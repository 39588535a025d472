from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.lost_capacity import LostCapacity
    from ..models.pace_shift import PaceShift


T = TypeVar("T", bound="Disturbances")


@_attrs_define
class Disturbances:
    """Disturbances to expect in runs beyond what past executions show; agents are trained and evaluated with them.

    The iteration at which one begins is drawn uniformly over the run. As in a live run, it shows only in what is
    measured, and in a reported allocation that is less than the decided one. A ``pace_shift`` to slower paces also
    changes decisions at once: without an agent, targets are aimed at earlier, and allocations change less often.

    """

    lost_capacity: LostCapacity | None | Unset = UNSET
    pace_shift: None | PaceShift | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.lost_capacity import LostCapacity  # noqa: PLC0415
        from ..models.pace_shift import PaceShift  # noqa: PLC0415

        lost_capacity: dict[str, Any] | None | Unset
        if isinstance(self.lost_capacity, Unset):
            lost_capacity = UNSET
        elif isinstance(self.lost_capacity, LostCapacity):
            lost_capacity = self.lost_capacity.to_dict()
        else:
            lost_capacity = self.lost_capacity

        pace_shift: dict[str, Any] | None | Unset
        if isinstance(self.pace_shift, Unset):
            pace_shift = UNSET
        elif isinstance(self.pace_shift, PaceShift):
            pace_shift = self.pace_shift.to_dict()
        else:
            pace_shift = self.pace_shift

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if lost_capacity is not UNSET:
            field_dict["lost_capacity"] = lost_capacity
        if pace_shift is not UNSET:
            field_dict["pace_shift"] = pace_shift

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.lost_capacity import LostCapacity  # noqa: PLC0415
        from ..models.pace_shift import PaceShift  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_lost_capacity(data: object) -> LostCapacity | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                lost_capacity_type_0 = LostCapacity.from_dict(data)

                return lost_capacity_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LostCapacity | None | Unset, data)

        lost_capacity = _parse_lost_capacity(d.pop("lost_capacity", UNSET))

        def _parse_pace_shift(data: object) -> None | PaceShift | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                pace_shift_type_0 = PaceShift.from_dict(data)

                return pace_shift_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PaceShift | Unset, data)

        pace_shift = _parse_pace_shift(d.pop("pace_shift", UNSET))

        disturbances = cls(
            lost_capacity=lost_capacity,
            pace_shift=pace_shift,
        )

        return disturbances
