from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="Rejection")


@_attrs_define
class Rejection:
    """A rejected execution, and why."""

    execution: str
    line: int
    """ Line of the file, counting from 1; for application/json the number of the sample. """
    field: str
    """ JSON pointer into the report. """
    reason: str
    value: Any | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        execution = self.execution

        line = self.line

        field = self.field

        reason = self.reason

        value = self.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "execution": execution,
                "line": line,
                "field": field,
                "reason": reason,
            }
        )
        if value is not UNSET:
            field_dict["value"] = value

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        execution = d.pop("execution")

        line = d.pop("line")

        field = d.pop("field")

        reason = d.pop("reason")

        value = d.pop("value", UNSET)

        rejection = cls(
            execution=execution,
            line=line,
            field=field,
            reason=reason,
            value=value,
        )

        rejection.additional_properties = d
        return rejection

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
