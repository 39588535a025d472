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
    """ minimum GPUs of a job, unless it sets its own """
    maximum: int | None | Unset = UNSET
    """ maximum GPUs of a job; null: all """
    data_power: float | Unset = 0.0
    """ exponent of a job's data size, relative to its application's usual size, in the weight of its completion
    time. At 1, larger data gets more GPUs and the mean completion time rises; at 0, short jobs go first """
    patience_seconds: float | Unset = 86400.0
    """ waiting time after which a job goes before all others, so that none starves """
    restart_seconds: float | Unset = 30.0
    """ time a job loses when its nodes change """
    interval_seconds: float | Unset = 60.0
    """ time between decisions when nothing else happens """
    demotion_gpu_hours: float | Unset = 16.0
    """ service after which the least-attained-service rule ranks a job as less urgent """
    episode_intervals: int | Unset = 120
    """ intervals per episode in training and evaluation """
    members: list[str] | Unset = UNSET
    """ Registered workloads that use whole GPUs. A job whose `application` names one is a run of it: its speed
    follows from the domain model, its length from the iterations, its deadline from the targets for
    `iteration_seconds`. """
    convergence: Convergence | None | Unset = UNSET
    """ Jobs with a small remaining gain release GPUs, down to their minimum; null: disabled. Applies to jobs that
    state their number of iterations. """
    weights: ClusterWeights | Unset = UNSET
    """ Relative weights, without unit, of the objective's terms; 0 disables a term. """

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
