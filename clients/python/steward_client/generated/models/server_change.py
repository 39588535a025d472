from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.server_change_state import ServerChangeState
from ..types import UNSET, Unset

T = TypeVar("T", bound="ServerChange")


@_attrs_define
class ServerChange:
    """A change of a server's state. If it goes down, the requests of its batch return to the queue."""

    server: str
    state: ServerChangeState
    at: float | None | Unset = UNSET
    """ null: the time of the report """

    def to_dict(self) -> dict[str, Any]:
        server = self.server

        state = self.state.value

        at: float | None | Unset
        if isinstance(self.at, Unset):
            at = UNSET
        else:
            at = self.at

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "server": server,
                "state": state,
            }
        )
        if at is not UNSET:
            field_dict["at"] = at

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        server = d.pop("server")

        state = ServerChangeState(d.pop("state"))

        def _parse_at(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        at = _parse_at(d.pop("at", UNSET))

        server_change = cls(
            server=server,
            state=state,
            at=at,
        )

        return server_change
