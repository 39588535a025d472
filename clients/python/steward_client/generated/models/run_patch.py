from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.run_patch_state import RunPatchState

T = TypeVar("T", bound="RunPatch")


@_attrs_define
class RunPatch:
    """End a run."""

    state: RunPatchState

    def to_dict(self) -> dict[str, Any]:
        state = self.state.value

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        state = RunPatchState(d.pop("state"))

        run_patch = cls(
            state=state,
        )

        return run_patch
