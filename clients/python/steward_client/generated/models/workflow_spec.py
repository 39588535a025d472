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

from ..models.workflow_spec_backfill_order_type_0 import WorkflowSpecBackfillOrderType0
from ..models.workflow_spec_backfilling import WorkflowSpecBackfilling
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.limits import Limits
    from ..models.node_type import NodeType
    from ..models.objective import Objective


T = TypeVar("T", bound="WorkflowSpec")


@_attrs_define
class WorkflowSpec:
    """A workload of kind ``workflow``: its nodes, objective, limits and initial strategy."""

    name: str
    kind: Literal["workflow"]
    nodes: list[NodeType]
    weights: Objective | Unset = UNSET
    """ Relative weights of the objective's terms, each normalised by its reference. """
    limits_per_user: Limits | Unset = UNSET
    """ Limits per user at a time; null: unlimited. """
    strategy: str | Unset = "sjf"
    """ order in which tasks start while no agent is promoted; `agent`: that of the scheduler shipped with Steward,
    with sjf as fallback; for tasks that depend on each other, that of a searched plan, or heft if none is better
    """
    backfilling: WorkflowSpecBackfilling | Unset = WorkflowSpecBackfilling.EASY
    """ backfilling: which tasks may start before a reserved one; none: the first that waits stays first until it
    starts; uncommitted: none, but each decision orders all anew, and large tasks may wait for ever """
    backfill_order: None | Unset | WorkflowSpecBackfillOrderType0 = UNSET
    """ order in which tasks are backfilled; null: fcfs, and under saf-predicted the strategy's own; not with
    lookahead, which backfills in the order that it simulates """

    def to_dict(self) -> dict[str, Any]:
        name = self.name

        kind = self.kind

        nodes = []
        for nodes_item_data in self.nodes:
            nodes_item = nodes_item_data.to_dict()
            nodes.append(nodes_item)

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        limits_per_user: dict[str, Any] | Unset = UNSET
        if not isinstance(self.limits_per_user, Unset):
            limits_per_user = self.limits_per_user.to_dict()

        strategy = self.strategy

        backfilling: str | Unset = UNSET
        if not isinstance(self.backfilling, Unset):
            backfilling = self.backfilling.value

        backfill_order: None | str | Unset
        if isinstance(self.backfill_order, Unset):
            backfill_order = UNSET
        elif isinstance(self.backfill_order, WorkflowSpecBackfillOrderType0):
            backfill_order = self.backfill_order.value
        else:
            backfill_order = self.backfill_order

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "name": name,
                "kind": kind,
                "nodes": nodes,
            }
        )
        if weights is not UNSET:
            field_dict["weights"] = weights
        if limits_per_user is not UNSET:
            field_dict["limits_per_user"] = limits_per_user
        if strategy is not UNSET:
            field_dict["strategy"] = strategy
        if backfilling is not UNSET:
            field_dict["backfilling"] = backfilling
        if backfill_order is not UNSET:
            field_dict["backfill_order"] = backfill_order

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.limits import Limits  # noqa: PLC0415
        from ..models.node_type import NodeType  # noqa: PLC0415
        from ..models.objective import Objective  # noqa: PLC0415

        d = dict(src_dict)
        name = d.pop("name")

        kind = cast(Literal["workflow"], d.pop("kind"))
        if kind != "workflow":
            raise ValueError(f"kind must match const 'workflow', got '{kind}'")

        nodes = []
        _nodes = d.pop("nodes")
        for nodes_item_data in _nodes:
            nodes_item = NodeType.from_dict(nodes_item_data)

            nodes.append(nodes_item)

        _weights = d.pop("weights", UNSET)
        weights: Objective | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = Objective.from_dict(_weights)

        _limits_per_user = d.pop("limits_per_user", UNSET)
        limits_per_user: Limits | Unset
        if isinstance(_limits_per_user, Unset):
            limits_per_user = UNSET
        else:
            limits_per_user = Limits.from_dict(_limits_per_user)

        strategy = d.pop("strategy", UNSET)

        _backfilling = d.pop("backfilling", UNSET)
        backfilling: WorkflowSpecBackfilling | Unset
        if isinstance(_backfilling, Unset):
            backfilling = UNSET
        else:
            backfilling = WorkflowSpecBackfilling(_backfilling)

        def _parse_backfill_order(data: object) -> None | Unset | WorkflowSpecBackfillOrderType0:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                backfill_order_type_0 = WorkflowSpecBackfillOrderType0(data)

                return backfill_order_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Unset | WorkflowSpecBackfillOrderType0, data)

        backfill_order = _parse_backfill_order(d.pop("backfill_order", UNSET))

        workflow_spec = cls(
            name=name,
            kind=kind,
            nodes=nodes,
            weights=weights,
            limits_per_user=limits_per_user,
            strategy=strategy,
            backfilling=backfilling,
            backfill_order=backfill_order,
        )

        return workflow_spec
