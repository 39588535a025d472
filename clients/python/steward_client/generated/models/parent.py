from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Parent")


@_attrs_define
class Parent:
    """A task that must end before its child starts."""

    task: str
    bytes_: float | Unset = 0.0
    """ size of the output that is read """

    def to_dict(self) -> dict[str, Any]:
        task = self.task

        bytes_ = self.bytes_

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "task": task,
            }
        )
        if bytes_ is not UNSET:
            field_dict["bytes"] = bytes_

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        task = d.pop("task")

        bytes_ = d.pop("bytes", UNSET)

        parent = cls(
            task=task,
            bytes_=bytes_,
        )

        return parent
