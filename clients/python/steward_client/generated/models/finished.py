from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Finished")


@_attrs_define
class Finished:
    """The end of a batch; its details are used for the run's samples, which are made from reports only."""

    server: str
    """ Class and index, starting at 0. """
    at: float
    variant: None | str | Unset = UNSET
    batch: int | None | Unset = UNSET
    seconds: float | None | Unset = UNSET
    """ measured duration of the batch """

    def to_dict(self) -> dict[str, Any]:
        server = self.server

        at = self.at

        variant: None | str | Unset
        if isinstance(self.variant, Unset):
            variant = UNSET
        else:
            variant = self.variant

        batch: int | None | Unset
        if isinstance(self.batch, Unset):
            batch = UNSET
        else:
            batch = self.batch

        seconds: float | None | Unset
        if isinstance(self.seconds, Unset):
            seconds = UNSET
        else:
            seconds = self.seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "server": server,
                "at": at,
            }
        )
        if variant is not UNSET:
            field_dict["variant"] = variant
        if batch is not UNSET:
            field_dict["batch"] = batch
        if seconds is not UNSET:
            field_dict["seconds"] = seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        server = d.pop("server")

        at = d.pop("at")

        def _parse_variant(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        variant = _parse_variant(d.pop("variant", UNSET))

        def _parse_batch(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch = _parse_batch(d.pop("batch", UNSET))

        def _parse_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds = _parse_seconds(d.pop("seconds", UNSET))

        finished = cls(
            server=server,
            at=at,
            variant=variant,
            batch=batch,
            seconds=seconds,
        )

        return finished
