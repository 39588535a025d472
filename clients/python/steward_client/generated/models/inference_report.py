from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.arrived import Arrived
    from ..models.finished import Finished
    from ..models.server_change import ServerChange
    from ..models.started import Started


T = TypeVar("T", bound="InferenceReport")


@_attrs_define
class InferenceReport:
    """Events since the last report, in order of time within each list."""

    at: float
    """ Time of the report, in seconds since the run's start. """
    kind: Literal["inference"] | Unset = "inference"
    arrived: list[Arrived] | Unset = UNSET
    finished: list[Finished] | Unset = UNSET
    servers: list[ServerChange] | Unset = UNSET
    started: list[Started] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        at = self.at

        kind = self.kind

        arrived: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.arrived, Unset):
            arrived = []
            for arrived_item_data in self.arrived:
                arrived_item = arrived_item_data.to_dict()
                arrived.append(arrived_item)

        finished: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.finished, Unset):
            finished = []
            for finished_item_data in self.finished:
                finished_item = finished_item_data.to_dict()
                finished.append(finished_item)

        servers: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.servers, Unset):
            servers = []
            for servers_item_data in self.servers:
                servers_item = servers_item_data.to_dict()
                servers.append(servers_item)

        started: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.started, Unset):
            started = []
            for started_item_data in self.started:
                started_item = started_item_data.to_dict()
                started.append(started_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if arrived is not UNSET:
            field_dict["arrived"] = arrived
        if finished is not UNSET:
            field_dict["finished"] = finished
        if servers is not UNSET:
            field_dict["servers"] = servers
        if started is not UNSET:
            field_dict["started"] = started

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.arrived import Arrived  # noqa: PLC0415
        from ..models.finished import Finished  # noqa: PLC0415
        from ..models.server_change import ServerChange  # noqa: PLC0415
        from ..models.started import Started  # noqa: PLC0415

        d = dict(src_dict)
        at = d.pop("at")

        kind = cast(Literal["inference"] | Unset, d.pop("kind", UNSET))
        if kind != "inference" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'inference', got '{kind}'")

        _arrived = d.pop("arrived", UNSET)
        arrived: list[Arrived] | Unset = UNSET
        if _arrived is not UNSET:
            arrived = []
            for arrived_item_data in _arrived:
                arrived_item = Arrived.from_dict(arrived_item_data)

                arrived.append(arrived_item)

        _finished = d.pop("finished", UNSET)
        finished: list[Finished] | Unset = UNSET
        if _finished is not UNSET:
            finished = []
            for finished_item_data in _finished:
                finished_item = Finished.from_dict(finished_item_data)

                finished.append(finished_item)

        _servers = d.pop("servers", UNSET)
        servers: list[ServerChange] | Unset = UNSET
        if _servers is not UNSET:
            servers = []
            for servers_item_data in _servers:
                servers_item = ServerChange.from_dict(servers_item_data)

                servers.append(servers_item)

        _started = d.pop("started", UNSET)
        started: list[Started] | Unset = UNSET
        if _started is not UNSET:
            started = []
            for started_item_data in _started:
                started_item = Started.from_dict(started_item_data)

                started.append(started_item)

        inference_report = cls(
            at=at,
            kind=kind,
            arrived=arrived,
            finished=finished,
            servers=servers,
            started=started,
        )

        return inference_report
