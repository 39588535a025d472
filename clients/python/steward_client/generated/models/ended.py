from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.ended_state import EndedState
from ..types import UNSET, Unset

T = TypeVar("T", bound="Ended")


@_attrs_define
class Ended:
    """A job that has finished or failed."""

    job: str
    state: EndedState | Unset = EndedState.FINISHED
    reason: str | Unset = ""
    """ why it failed, such as the last line of its log; shown on the run's page """

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        state: str | Unset = UNSET
        if not isinstance(self.state, Unset):
            state = self.state.value

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "job": job,
            }
        )
        if state is not UNSET:
            field_dict["state"] = state
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        _state = d.pop("state", UNSET)
        state: EndedState | Unset
        if isinstance(_state, Unset):
            state = UNSET
        else:
            state = EndedState(_state)

        reason = d.pop("reason", UNSET)

        ended = cls(
            job=job,
            state=state,
            reason=reason,
        )

        return ended
