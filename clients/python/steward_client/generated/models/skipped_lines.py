from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="SkippedLines")


@_attrs_define
class SkippedLines:
    """Lines of a trace skipped for one reason, with `skip_bad`."""

    field: str
    """ Invalid column; empty for a whole line. """
    reason: str
    count: int
    """ Number of lines. """
    lines: list[int]
    """ Numbers of the first 20 lines, counting from 1. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        field = self.field

        reason = self.reason

        count = self.count

        lines = self.lines

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "field": field,
                "reason": reason,
                "count": count,
                "lines": lines,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        field = d.pop("field")

        reason = d.pop("reason")

        count = d.pop("count")

        lines = cast(list[int], d.pop("lines"))

        skipped_lines = cls(
            field=field,
            reason=reason,
            count=count,
            lines=lines,
        )

        skipped_lines.additional_properties = d
        return skipped_lines

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
