from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="HeldOut")


@_attrs_define
class HeldOut:
    """What level L3 holds out: executions to fit its domain model on, or another part of the workload."""

    share: float | Unset = 0.25
    """ Share of the executions; those newer than the agents' model are taken first. """
    of: str | Unset = "executions"
    """ What to hold out a share of: `executions`, or another unit that the workload's kind supports (`users` for
    kind `inference`). """
    executions: list[str] | None | Unset = UNSET
    """ Names of executions, instead of a share. """

    def to_dict(self) -> dict[str, Any]:
        share = self.share

        of = self.of

        executions: list[str] | None | Unset
        if isinstance(self.executions, Unset):
            executions = UNSET
        elif isinstance(self.executions, list):
            executions = self.executions

        else:
            executions = self.executions

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if share is not UNSET:
            field_dict["share"] = share
        if of is not UNSET:
            field_dict["of"] = of
        if executions is not UNSET:
            field_dict["executions"] = executions

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        share = d.pop("share", UNSET)

        of = d.pop("of", UNSET)

        def _parse_executions(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                executions_type_0 = cast(list[str], data)

                return executions_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        executions = _parse_executions(d.pop("executions", UNSET))

        held_out = cls(
            share=share,
            of=of,
            executions=executions,
        )

        return held_out
