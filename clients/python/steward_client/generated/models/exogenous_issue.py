from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.exogenous_point import ExogenousPoint


T = TypeVar("T", bound="ExogenousIssue")


@_attrs_define
class ExogenousIssue:
    """One issue of a series: what was known at one moment."""

    issued_at: datetime.datetime
    """ When this was known; repeating an issue replaces its rows. """
    rows: list[ExogenousPoint]
    """ Each time at most once; send more rows in several requests. """

    def to_dict(self) -> dict[str, Any]:
        issued_at = self.issued_at.isoformat()

        rows = []
        for rows_item_data in self.rows:
            rows_item = rows_item_data.to_dict()
            rows.append(rows_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "issued_at": issued_at,
                "rows": rows,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.exogenous_point import ExogenousPoint  # noqa: PLC0415

        d = dict(src_dict)
        issued_at = datetime.datetime.fromisoformat(d.pop("issued_at"))

        rows = []
        _rows = d.pop("rows")
        for rows_item_data in _rows:
            rows_item = ExogenousPoint.from_dict(rows_item_data)

            rows.append(rows_item)

        exogenous_issue = cls(
            issued_at=issued_at,
            rows=rows,
        )

        return exogenous_issue
