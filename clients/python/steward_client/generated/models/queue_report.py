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
    from ..models.finished_task import FinishedTask
    from ..models.node_report import NodeReport
    from ..models.queued_task import QueuedTask
    from ..models.running_task import RunningTask


T = TypeVar("T", bound="QueueReport")


@_attrs_define
class QueueReport:
    """State of a queue at one moment."""

    now: float
    kind: Literal["workflow"] | Unset = "workflow"
    delta: bool | Unset = False
    """ whether only changes are listed """
    queued: list[QueuedTask] | Unset = UNSET
    running: list[RunningTask] | Unset = UNSET
    finished: list[FinishedTask] | Unset = UNSET
    withdrawn: list[str] | Unset = UNSET
    """ tasks removed from the queue; in a full report, tasks not listed are removed too """
    nodes: list[NodeReport] | None | Unset = UNSET
    """ nodes whose state has changed; in a full report, nodes not listed are off """

    def to_dict(self) -> dict[str, Any]:
        now = self.now

        kind = self.kind

        delta = self.delta

        queued: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.queued, Unset):
            queued = []
            for queued_item_data in self.queued:
                queued_item = queued_item_data.to_dict()
                queued.append(queued_item)

        running: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.running, Unset):
            running = []
            for running_item_data in self.running:
                running_item = running_item_data.to_dict()
                running.append(running_item)

        finished: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.finished, Unset):
            finished = []
            for finished_item_data in self.finished:
                finished_item = finished_item_data.to_dict()
                finished.append(finished_item)

        withdrawn: list[str] | Unset = UNSET
        if not isinstance(self.withdrawn, Unset):
            withdrawn = self.withdrawn

        nodes: list[dict[str, Any]] | None | Unset
        if isinstance(self.nodes, Unset):
            nodes = UNSET
        elif isinstance(self.nodes, list):
            nodes = []
            for nodes_type_0_item_data in self.nodes:
                nodes_type_0_item = nodes_type_0_item_data.to_dict()
                nodes.append(nodes_type_0_item)

        else:
            nodes = self.nodes

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "now": now,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if delta is not UNSET:
            field_dict["delta"] = delta
        if queued is not UNSET:
            field_dict["queued"] = queued
        if running is not UNSET:
            field_dict["running"] = running
        if finished is not UNSET:
            field_dict["finished"] = finished
        if withdrawn is not UNSET:
            field_dict["withdrawn"] = withdrawn
        if nodes is not UNSET:
            field_dict["nodes"] = nodes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.finished_task import FinishedTask  # noqa: PLC0415
        from ..models.node_report import NodeReport  # noqa: PLC0415
        from ..models.queued_task import QueuedTask  # noqa: PLC0415
        from ..models.running_task import RunningTask  # noqa: PLC0415

        d = dict(src_dict)
        now = d.pop("now")

        kind = cast(Literal["workflow"] | Unset, d.pop("kind", UNSET))
        if kind != "workflow" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'workflow', got '{kind}'")

        delta = d.pop("delta", UNSET)

        _queued = d.pop("queued", UNSET)
        queued: list[QueuedTask] | Unset = UNSET
        if _queued is not UNSET:
            queued = []
            for queued_item_data in _queued:
                queued_item = QueuedTask.from_dict(queued_item_data)

                queued.append(queued_item)

        _running = d.pop("running", UNSET)
        running: list[RunningTask] | Unset = UNSET
        if _running is not UNSET:
            running = []
            for running_item_data in _running:
                running_item = RunningTask.from_dict(running_item_data)

                running.append(running_item)

        _finished = d.pop("finished", UNSET)
        finished: list[FinishedTask] | Unset = UNSET
        if _finished is not UNSET:
            finished = []
            for finished_item_data in _finished:
                finished_item = FinishedTask.from_dict(finished_item_data)

                finished.append(finished_item)

        withdrawn = cast(list[str], d.pop("withdrawn", UNSET))

        def _parse_nodes(data: object) -> list[NodeReport] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                nodes_type_0 = []
                _nodes_type_0 = data
                for nodes_type_0_item_data in _nodes_type_0:
                    nodes_type_0_item = NodeReport.from_dict(nodes_type_0_item_data)

                    nodes_type_0.append(nodes_type_0_item)

                return nodes_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[NodeReport] | None | Unset, data)

        nodes = _parse_nodes(d.pop("nodes", UNSET))

        queue_report = cls(
            now=now,
            kind=kind,
            delta=delta,
            queued=queued,
            running=running,
            finished=finished,
            withdrawn=withdrawn,
            nodes=nodes,
        )

        return queue_report
