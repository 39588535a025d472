from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="JobQueue")


@_attrs_define
class JobQueue:
    """Jobs of one priority; the first queue of a spec is the most urgent."""

    name: str
    weight: float | Unset = 1.0
    """ relative weight of its jobs' completion times """
    ageing_seconds: float | None | Unset = UNSET
    """ waiting time after which a job counts as of the next more urgent queue; null: never """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        weight = self.weight

        ageing_seconds: float | None | Unset
        if isinstance(self.ageing_seconds, Unset):
            ageing_seconds = UNSET
        else:
            ageing_seconds = self.ageing_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
            }
        )
        if weight is not UNSET:
            field_dict["weight"] = weight
        if ageing_seconds is not UNSET:
            field_dict["ageing_seconds"] = ageing_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        name = d.pop("name")

        weight = d.pop("weight", UNSET)

        def _parse_ageing_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        ageing_seconds = _parse_ageing_seconds(d.pop("ageing_seconds", UNSET))

        job_queue = cls(
            name=name,
            weight=weight,
            ageing_seconds=ageing_seconds,
        )

        return job_queue
