from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="JobStart")


@_attrs_define
class JobStart:
    """Expected seconds until a pending job starts, with a 90 % interval."""

    job: str
    seconds: float
    """ Expected time to its start: when running jobs, as they are expected to end, have left its minimum of GPUs
    after what the jobs before it take. """
    seconds_low: float | None | Unset = UNSET
    """ Lower bound: with `seconds_high` a 90 % interval, by how far off predictions for other jobs of this run
    were; null until 19 that waited have started. """
    seconds_high: float | None | Unset = UNSET
    """ Upper bound. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        seconds = self.seconds

        seconds_low: float | None | Unset
        if isinstance(self.seconds_low, Unset):
            seconds_low = UNSET
        else:
            seconds_low = self.seconds_low

        seconds_high: float | None | Unset
        if isinstance(self.seconds_high, Unset):
            seconds_high = UNSET
        else:
            seconds_high = self.seconds_high

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job": job,
                "seconds": seconds,
            }
        )
        if seconds_low is not UNSET:
            field_dict["seconds_low"] = seconds_low
        if seconds_high is not UNSET:
            field_dict["seconds_high"] = seconds_high

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        seconds = d.pop("seconds")

        def _parse_seconds_low(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds_low = _parse_seconds_low(d.pop("seconds_low", UNSET))

        def _parse_seconds_high(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds_high = _parse_seconds_high(d.pop("seconds_high", UNSET))

        job_start = cls(
            job=job,
            seconds=seconds,
            seconds_low=seconds_low,
            seconds_high=seconds_high,
        )

        job_start.additional_properties = d
        return job_start

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
