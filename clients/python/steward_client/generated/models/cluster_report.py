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
    from ..models.ended import Ended
    from ..models.node_change import NodeChange
    from ..models.progressed import Progressed
    from ..models.submitted import Submitted


T = TypeVar("T", bound="ClusterReport")


@_attrs_define
class ClusterReport:
    """Changes since the last report or, if ``whole``, the full state."""

    at: float
    """ Time of the report, in seconds since the run's start. """
    kind: Literal["cluster"] | Unset = "cluster"
    whole: bool | Unset = False
    """ Whether `submitted` and `nodes` are complete: jobs not listed have left, nodes not listed have the GPUs of
    the spec. Earlier information on listed jobs is kept. """
    submitted: list[Submitted] | Unset = UNSET
    progressed: list[Progressed] | Unset = UNSET
    ended: list[Ended] | Unset = UNSET
    nodes: list[NodeChange] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        at = self.at

        kind = self.kind

        whole = self.whole

        submitted: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.submitted, Unset):
            submitted = []
            for submitted_item_data in self.submitted:
                submitted_item = submitted_item_data.to_dict()
                submitted.append(submitted_item)

        progressed: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.progressed, Unset):
            progressed = []
            for progressed_item_data in self.progressed:
                progressed_item = progressed_item_data.to_dict()
                progressed.append(progressed_item)

        ended: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.ended, Unset):
            ended = []
            for ended_item_data in self.ended:
                ended_item = ended_item_data.to_dict()
                ended.append(ended_item)

        nodes: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.nodes, Unset):
            nodes = []
            for nodes_item_data in self.nodes:
                nodes_item = nodes_item_data.to_dict()
                nodes.append(nodes_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "at": at,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if whole is not UNSET:
            field_dict["whole"] = whole
        if submitted is not UNSET:
            field_dict["submitted"] = submitted
        if progressed is not UNSET:
            field_dict["progressed"] = progressed
        if ended is not UNSET:
            field_dict["ended"] = ended
        if nodes is not UNSET:
            field_dict["nodes"] = nodes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.ended import Ended  # noqa: PLC0415
        from ..models.node_change import NodeChange  # noqa: PLC0415
        from ..models.progressed import Progressed  # noqa: PLC0415
        from ..models.submitted import Submitted  # noqa: PLC0415

        d = dict(src_dict)
        at = d.pop("at")

        kind = cast(Literal["cluster"] | Unset, d.pop("kind", UNSET))
        if kind != "cluster" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'cluster', got '{kind}'")

        whole = d.pop("whole", UNSET)

        _submitted = d.pop("submitted", UNSET)
        submitted: list[Submitted] | Unset = UNSET
        if _submitted is not UNSET:
            submitted = []
            for submitted_item_data in _submitted:
                submitted_item = Submitted.from_dict(submitted_item_data)

                submitted.append(submitted_item)

        _progressed = d.pop("progressed", UNSET)
        progressed: list[Progressed] | Unset = UNSET
        if _progressed is not UNSET:
            progressed = []
            for progressed_item_data in _progressed:
                progressed_item = Progressed.from_dict(progressed_item_data)

                progressed.append(progressed_item)

        _ended = d.pop("ended", UNSET)
        ended: list[Ended] | Unset = UNSET
        if _ended is not UNSET:
            ended = []
            for ended_item_data in _ended:
                ended_item = Ended.from_dict(ended_item_data)

                ended.append(ended_item)

        _nodes = d.pop("nodes", UNSET)
        nodes: list[NodeChange] | Unset = UNSET
        if _nodes is not UNSET:
            nodes = []
            for nodes_item_data in _nodes:
                nodes_item = NodeChange.from_dict(nodes_item_data)

                nodes.append(nodes_item)

        cluster_report = cls(
            at=at,
            kind=kind,
            whole=whole,
            submitted=submitted,
            progressed=progressed,
            ended=ended,
            nodes=nodes,
        )

        return cluster_report
