from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="BackfillWindow")


@_attrs_define
class BackfillWindow:
    """The reservation of the most urgent pending task. Tasks that are expected to end by then can be backfilled, and
    under `easy` those that need no more than the spare processors, or start on other nodes.

    """

    task: str
    """ The pending task. """
    node: None | str
    """ Node it will start on; null if no rented node can hold it. """
    until: float | None
    """ Start time if running tasks end as expected; null if unknown. """
    spare_processors: int
    """ Processors on that node that it leaves for backfilling. """
    overtook: list[str]
    """ Tasks that are backfilled now. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        task = self.task

        node: None | str
        node = self.node

        until: float | None
        until = self.until

        spare_processors = self.spare_processors

        overtook = self.overtook

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "task": task,
                "node": node,
                "until": until,
                "spare_processors": spare_processors,
                "overtook": overtook,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        task = d.pop("task")

        def _parse_node(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        node = _parse_node(d.pop("node"))

        def _parse_until(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        until = _parse_until(d.pop("until"))

        spare_processors = d.pop("spare_processors")

        overtook = cast(list[str], d.pop("overtook"))

        backfill_window = cls(
            task=task,
            node=node,
            until=until,
            spare_processors=spare_processors,
            overtook=overtook,
        )

        backfill_window.additional_properties = d
        return backfill_window

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
