from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ExogenousRead")


@_attrs_define
class ExogenousRead:
    """One row of a series: a time, and the value expected for it with its interval, in the series' unit."""

    time: datetime.datetime
    issued_at: datetime.datetime
    mean: float
    low: float
    high: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        time = self.time.isoformat()

        issued_at = self.issued_at.isoformat()

        mean = self.mean

        low = self.low

        high = self.high

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "time": time,
                "issued_at": issued_at,
                "mean": mean,
                "low": low,
                "high": high,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        time = datetime.datetime.fromisoformat(d.pop("time"))

        issued_at = datetime.datetime.fromisoformat(d.pop("issued_at"))

        mean = d.pop("mean")

        low = d.pop("low")

        high = d.pop("high")

        exogenous_read = cls(
            time=time,
            issued_at=issued_at,
            mean=mean,
            low=low,
            high=high,
        )

        exogenous_read.additional_properties = d
        return exogenous_read

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
