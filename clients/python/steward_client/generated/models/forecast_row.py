from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ForecastRow")


@_attrs_define
class ForecastRow:
    """Forecast count of one interval of a series: mean, median and bounds of the interval of probability `level`."""

    series: str
    time: datetime.datetime
    """ Start of the interval. """
    horizon_seconds: float
    """ From the end of the known data to the end of the interval. """
    family: str
    """ Forecaster, as named in the model's report. """
    interval_seconds: float
    """ Length of the interval. """
    mean: float
    """ Mean of the forecast. """
    median: float
    """ Forecast with the least absolute error. """
    low: float
    high: float
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        series = self.series

        time = self.time.isoformat()

        horizon_seconds = self.horizon_seconds

        family = self.family

        interval_seconds = self.interval_seconds

        mean = self.mean

        median = self.median

        low = self.low

        high = self.high

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "series": series,
                "time": time,
                "horizon_seconds": horizon_seconds,
                "family": family,
                "interval_seconds": interval_seconds,
                "mean": mean,
                "median": median,
                "low": low,
                "high": high,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        series = d.pop("series")

        time = datetime.datetime.fromisoformat(d.pop("time"))

        horizon_seconds = d.pop("horizon_seconds")

        family = d.pop("family")

        interval_seconds = d.pop("interval_seconds")

        mean = d.pop("mean")

        median = d.pop("median")

        low = d.pop("low")

        high = d.pop("high")

        forecast_row = cls(
            series=series,
            time=time,
            horizon_seconds=horizon_seconds,
            family=family,
            interval_seconds=interval_seconds,
            mean=mean,
            median=median,
            low=low,
            high=high,
        )

        forecast_row.additional_properties = d
        return forecast_row

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
