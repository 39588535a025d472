from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ExogenousPoint")


@_attrs_define
class ExogenousPoint:
    """Expected value at one time with its interval, in the series' unit."""

    time: datetime.datetime
    mean: float
    low: float | None | Unset = UNSET
    """ Default: the mean, for values known for certain. """
    high: float | None | Unset = UNSET
    """ Default: the mean. """

    def to_dict(self) -> dict[str, Any]:
        time = self.time.isoformat()

        mean = self.mean

        low: float | None | Unset
        if isinstance(self.low, Unset):
            low = UNSET
        else:
            low = self.low

        high: float | None | Unset
        if isinstance(self.high, Unset):
            high = UNSET
        else:
            high = self.high

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "time": time,
                "mean": mean,
            }
        )
        if low is not UNSET:
            field_dict["low"] = low
        if high is not UNSET:
            field_dict["high"] = high

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        time = datetime.datetime.fromisoformat(d.pop("time"))

        mean = d.pop("mean")

        def _parse_low(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        low = _parse_low(d.pop("low", UNSET))

        def _parse_high(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        high = _parse_high(d.pop("high", UNSET))

        exogenous_point = cls(
            time=time,
            mean=mean,
            low=low,
            high=high,
        )

        return exogenous_point
