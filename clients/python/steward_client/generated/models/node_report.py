from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.node_report_state import NodeReportState
from ..types import UNSET, Unset

T = TypeVar("T", bound="NodeReport")


@_attrs_define
class NodeReport:
    """A change of a node's state."""

    name: str
    state: NodeReportState
    since: float | None | Unset = UNSET
    """ when it was requested or rented; null: now """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        state = self.state.value

        since: float | None | Unset
        if isinstance(self.since, Unset):
            since = UNSET
        else:
            since = self.since

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "state": state,
            }
        )
        if since is not UNSET:
            field_dict["since"] = since

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        state = NodeReportState(d.pop("state"))

        def _parse_since(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        since = _parse_since(d.pop("since", UNSET))

        node_report = cls(
            name=name,
            state=state,
            since=since,
        )

        return node_report
