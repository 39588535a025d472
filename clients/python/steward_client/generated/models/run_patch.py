from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.run_patch_state import RunPatchState
from ..types import UNSET, Unset

T = TypeVar("T", bound="RunPatch")


@_attrs_define
class RunPatch:
    """The state in which a run ends, and why."""

    state: RunPatchState
    """ Final state. """
    reason: None | str | Unset = UNSET
    """ Reason of the end, such as an exception or an exit status. """

    def to_dict(self) -> dict[str, Any]:
        state = self.state.value

        reason: None | str | Unset
        if isinstance(self.reason, Unset):
            reason = UNSET
        else:
            reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "state": state,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = RunPatchState(d.pop("state"))

        def _parse_reason(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        reason = _parse_reason(d.pop("reason", UNSET))

        run_patch = cls(
            state=state,
            reason=reason,
        )

        return run_patch
