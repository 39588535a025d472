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
    from ..models.cluster_weights import ClusterWeights
    from ..models.convergence import Convergence
    from ..models.job_queue import JobQueue
    from ..models.node_class import NodeClass


T = TypeVar("T", bound="ClusterSpec")


@_attrs_define
class ClusterSpec:
    """A workload of kind ``cluster``: training jobs that come and go, and the GPUs that they share."""

    name: str
    kind: Literal["cluster"]
    nodes: list[NodeClass]
    queues: list[JobQueue] | Unset = UNSET
    minimum: int | Unset = 1
    """ GPUs of a job, unless it says otherwise """
    maximum: int | None | Unset = UNSET
    """ null: all there are """
    data_power: float | Unset = 0.0
    """ of a job's data over the usual of its application, by which its completion time counts more. With 1, larger
    data has more GPUs, and the mean completion time is longer; 0: short jobs first """
    patience_seconds: float | Unset = 86400.0
    """ of waiting, after which a job comes before all others: nobody waits for ever """
    restart_seconds: float | Unset = 30.0
    """ that a job loses when its nodes change """
    interval_seconds: float | Unset = 60.0
    """ between decisions, where nothing else happens """
    demotion_gpu_hours: float | Unset = 16.0
    """ of service after which the rule of least attained service counts a job as less urgent """
    episode_intervals: int | Unset = 120
    """ of an episode, in which agents learn and are judged """
    members: list[str] | Unset = UNSET
    """ Registered workloads that take whole GPUs. A job whose `application` is the name of one is a run of it: as
    fast as its domain model says, as long as its iterations, and wanted by its targets for `iteration_seconds`. """
    convergence: Convergence | None | Unset = UNSET
    """ Jobs that have little left to gain give GPUs back, down to their minimum; null: none does. It is for jobs
    that say how many iterations they have. """
    weights: ClusterWeights | Unset = UNSET
    """ What the terms of the objective are worth against each other. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.convergence import Convergence  # noqa: PLC0415

        name = self.name

        kind = self.kind

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        queues: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = []
            for queues_item_data in self.queues:
                queues_item = queues_item_data.to_dict()
                queues.append(queues_item)

        minimum = self.minimum

        maximum: int | None | Unset
        if isinstance(self.maximum, Unset):
            maximum = UNSET
        else:
            maximum = self.maximum

        data_power = self.data_power

        patience_seconds = self.patience_seconds

        restart_seconds = self.restart_seconds

        interval_seconds = self.interval_seconds

        demotion_gpu_hours = self.demotion_gpu_hours

        episode_intervals = self.episode_intervals

        members: list[str] | Unset = UNSET
        if not isinstance(self.members, Unset):
            members = self.members

        convergence: dict[str, Any] | None | Unset
        if isinstance(self.convergence, Unset):
            convergence = UNSET
        elif isinstance(self.convergence, Convergence):
            convergence = self.convergence.to_dict()
        else:
            convergence = self.convergence

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "kind": kind,
                "nodes": nodes,
            }
        )
        if queues is not UNSET:
            field_dict["queues"] = queues
        if minimum is not UNSET:
            field_dict["minimum"] = minimum
        if maximum is not UNSET:
            field_dict["maximum"] = maximum
        if data_power is not UNSET:
            field_dict["data_power"] = data_power
        if patience_seconds is not UNSET:
            field_dict["patience_seconds"] = patience_seconds
        if restart_seconds is not UNSET:
            field_dict["restart_seconds"] = restart_seconds
        if interval_seconds is not UNSET:
            field_dict["interval_seconds"] = interval_seconds
        if demotion_gpu_hours is not UNSET:
            field_dict["demotion_gpu_hours"] = demotion_gpu_hours
        if episode_intervals is not UNSET:
            field_dict["episode_intervals"] = episode_intervals
        if members is not UNSET:
            field_dict["members"] = members
        if convergence is not UNSET:
            field_dict["convergence"] = convergence
        if weights is not UNSET:
            field_dict["weights"] = weights

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_weights import ClusterWeights  # noqa: PLC0415
        from ..models.convergence import Convergence  # noqa: PLC0415
        from ..models.job_queue import JobQueue  # noqa: PLC0415
        from ..models.node_class import NodeClass  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        kind = cast(Literal["cluster"], d.pop("kind"))
        if kind != "cluster":
            raise ValueError(f"kind must match const 'cluster', got '{kind}'")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeClass.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        _queues = d.pop("queues", UNSET)
        queues: list[JobQueue] | Unset = UNSET
        if _queues is not UNSET:
            queues = []
            for queues_item_data in _queues:
                queues_item = JobQueue.from_dict(queues_item_data)

                queues.append(queues_item)

        minimum = d.pop("minimum", UNSET)

        def _parse_maximum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        maximum = _parse_maximum(d.pop("maximum", UNSET))

        data_power = d.pop("data_power", UNSET)

        patience_seconds = d.pop("patience_seconds", UNSET)

        restart_seconds = d.pop("restart_seconds", UNSET)

        interval_seconds = d.pop("interval_seconds", UNSET)

        demotion_gpu_hours = d.pop("demotion_gpu_hours", UNSET)

        episode_intervals = d.pop("episode_intervals", UNSET)

        members = cast(list[str], d.pop("members", UNSET))

        def _parse_convergence(data: object) -> Convergence | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                convergence_type_0 = Convergence.from_dict(data)

                return convergence_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Convergence | None | Unset, data)

        convergence = _parse_convergence(d.pop("convergence", UNSET))

        _weights = d.pop("weights", UNSET)
        weights: ClusterWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = ClusterWeights.from_dict(_weights)

        cluster_spec = cls(
            name=name,
            kind=kind,
            nodes=nodes,
            queues=queues,
            minimum=minimum,
            maximum=maximum,
            data_power=data_power,
            patience_seconds=patience_seconds,
            restart_seconds=restart_seconds,
            interval_seconds=interval_seconds,
            demotion_gpu_hours=demotion_gpu_hours,
            episode_intervals=episode_intervals,
            members=members,
            convergence=convergence,
            weights=weights,
        )

        return cluster_spec
