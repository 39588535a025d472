from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.finished_task_state import FinishedTaskState
from ..types import UNSET, Unset

T = TypeVar("T", bound="FinishedTask")


@_attrs_define
class FinishedTask:
    """A finished task; if it started since the last report, with start and node."""

    id: str
    end: float
    node: None | str | Unset = UNSET
    start: float | None | Unset = UNSET
    state: FinishedTaskState | Unset = FinishedTaskState.FINISHED
    """ how it ended; withdraw tasks that can't run without one that failed """
    reason: str | Unset = ""
    """ why it failed, such as the last line of its log; shown on the run's page """

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        end = self.end

        node: None | str | Unset
        if isinstance(self.node, Unset):
            node = UNSET
        else:
            node = self.node

        start: float | None | Unset
        if isinstance(self.start, Unset):
            start = UNSET
        else:
            start = self.start

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state.value

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
                "end": end,
            }
        )
        if node is not UNSET:
            field_dict["node"] = node
        if start is not UNSET:
            field_dict["start"] = start
        if state is not UNSET:
            field_dict["state"] = state
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        id = d.pop("id")

        end = d.pop("end")

        def _parse_node(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        node = _parse_node(d.pop("node", UNSET))

        def _parse_start(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        start = _parse_start(d.pop("start", UNSET))

        _state = d.pop("state", UNSET)
        state: FinishedTaskState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = FinishedTaskState(_state)

        reason = d.pop("reason", UNSET)

        finished_task = cls(
            id=id,
            end=end,
            node=node,
            start=start,
            state=state,
            reason=reason,
        )

        return finished_task
