from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Limits")


@_attrs_define
class Limits:
    """Limits per user at a time; null: unlimited."""

    running_tasks: int | None | Unset = UNSET
    processors: int | None | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        running_tasks: int | None | Unset
        if isinstance(self.running_tasks, Unset):
            running_tasks = UNSET
        else:
            running_tasks = self.running_tasks

        processors: int | None | Unset
        if isinstance(self.processors, Unset):
            processors = UNSET
        else:
            processors = self.processors

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if running_tasks is not UNSET:
            field_dict["running_tasks"] = running_tasks
        if processors is not UNSET:
            field_dict["processors"] = processors

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_running_tasks(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        running_tasks = _parse_running_tasks(d.pop("running_tasks", UNSET))

        def _parse_processors(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        processors = _parse_processors(d.pop("processors", UNSET))

        limits = cls(
            running_tasks=running_tasks,
            processors=processors,
        )

        return limits
