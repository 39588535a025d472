from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.interval import Interval


T = TypeVar("T", bound="LeftPrediction")


@_attrs_define
class LeftPrediction:
    """Expected remaining gain of a job in the unit of its loss or metric; losses fall, metrics rise."""

    level: float
    """ Current level of the job, without noise. """
    gain: Interval
    """ A prediction in the metric's unit: mean, and the bounds that hold with probability `level` for an unseen
    run. """
    measured: bool
    """ Whether enough jobs of the application have ended to know the error of such predictions; if not, the
    interval is as wide as other applications need, and `convergence` limits no job. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        level = self.level

        gain = self.gain.to_dict()

        measured = self.measured

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "level": level,
                "gain": gain,
                "measured": measured,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.interval import Interval  # noqa: PLC0415

        d = dict(src_dict)
        level = d.pop("level")

        gain = Interval.from_dict(d.pop("gain"))

        measured = d.pop("measured")

        left_prediction = cls(
            level=level,
            gain=gain,
            measured=measured,
        )

        left_prediction.additional_properties = d
        return left_prediction

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
