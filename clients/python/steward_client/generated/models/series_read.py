from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SeriesRead")


@_attrs_define
class SeriesRead:
    """Summary of a series: number of rows, first and last time, and time of the newest issue."""

    workload: str
    series: str
    rows: int
    """ Number of rows of all issues. """
    since: datetime.datetime
    """ Its earliest time. """
    until: datetime.datetime
    """ Its latest time. """
    issued_at: datetime.datetime
    """ Its newest issue. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        series = self.series

        rows = self.rows

        since = self.since.isoformat()

        until = self.until.isoformat()

        issued_at = self.issued_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "series": series,
                "rows": rows,
                "since": since,
                "until": until,
                "issued_at": issued_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        workload = d.pop("workload")

        series = d.pop("series")

        rows = d.pop("rows")

        since = datetime.datetime.fromisoformat(d.pop("since"))

        until = datetime.datetime.fromisoformat(d.pop("until"))

        issued_at = datetime.datetime.fromisoformat(d.pop("issued_at"))

        series_read = cls(
            workload=workload,
            series=series,
            rows=rows,
            since=since,
            until=until,
            issued_at=issued_at,
        )

        series_read.additional_properties = d
        return series_read

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
