from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.count import Count
    from ..models.forecast_row import ForecastRow


T = TypeVar("T", bound="Forecast")


@_attrs_define
class Forecast:
    """Forecast counts of a workload's series by interval, and the latest known ones."""

    workload: str
    model: int
    """ Version of the model used. """
    recent: list[Count]
    """ The latest known counts, at most 200 intervals of each series. """
    rows: list[ForecastRow]
    """ Ordered by series, then by horizon. """
    level: float | Unset = 0.9
    """ Probability that a count lies between `low` and `high`. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        model = self.model

        recent = []
        for recent_item_data in self.recent:
            recent_item = recent_item_data.to_dict()
            recent.append(recent_item)

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        level = self.level

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "model": model,
                "recent": recent,
                "rows": rows,
            }
        )
        if level is not UNSET:
            field_dict["level"] = level

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.count import Count  # noqa: PLC0415
        from ..models.forecast_row import ForecastRow  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        model = d.pop("model")

        recent = []
        _recent = d.pop("recent")
        for recent_item_data in _recent:
            recent_item = Count.from_dict(recent_item_data)

            recent.append(recent_item)

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = ForecastRow.from_dict(rows_item_data)

            rows.append(rows_item)

        level = d.pop("level", UNSET)

        forecast = cls(
            workload=workload,
            model=model,
            recent=recent,
            rows=rows,
            level=level,
        )

        forecast.additional_properties = d
        return forecast

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
