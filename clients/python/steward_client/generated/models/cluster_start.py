from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ClusterStart")


@_attrs_define
class ClusterStart:
    """Start a live run of a workload of kind ``cluster``."""

    workload: str
    """ Name of the workload. """
    shadow: int | None | Unset = UNSET
    """ Version of an agent that is consulted too: its steps are written down with each decision, and change
    nothing. """
    token: bool | Unset = False
    """ Whether to make a token for the run, which can report to it, end it and read it, and do nothing else; for a
    job that is not to hold a key. """

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        shadow: int | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        else:
            shadow = self.shadow

        token = self.token

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
            }
        )
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if token is not UNSET:
            field_dict["token"] = token

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        workload = d.pop("workload")

        def _parse_shadow(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        token = d.pop("token", UNSET)

        cluster_start = cls(
            workload=workload,
            shadow=shadow,
            token=token,
        )

        return cluster_start
