from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_decision import ClusterDecision
    from ..models.decision import Decision
    from ..models.inference_decision import InferenceDecision
    from ..models.queue_decision import QueueDecision


T = TypeVar("T", bound="RunStarted")


@_attrs_define
class RunStarted:
    """A started run, with its first decision."""

    id: str
    workload: str
    agent: int | None
    """ Version of the agent that serves; null: a heuristic. """
    decision: ClusterDecision | Decision | InferenceDecision | QueueDecision
    token: None | str | Unset = UNSET
    """ The run's own token, sent as `Authorization: Bearer …`, if one was requested. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415

        id = self.id

        workload = self.workload

        agent: int | None
        agent = self.agent

        decision: dict[str, Any]
        if isinstance(self.decision, ClusterDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, InferenceDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, Decision):
            decision = self.decision.to_dict()
        else:
            decision = self.decision.to_dict()

        token: None | str | Unset
        if isinstance(self.token, Unset):
            token = UNSET
        else:
            token = self.token

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "workload": workload,
                "agent": agent,
                "decision": decision,
            }
        )
        if token is not UNSET:
            field_dict["token"] = token

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415
        from ..models.queue_decision import QueueDecision  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        workload = d.pop("workload")

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        def _parse_decision(data: object) -> ClusterDecision | Decision | InferenceDecision | QueueDecision:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0 = ClusterDecision.from_dict(data)

                return decision_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_1 = InferenceDecision.from_dict(data)

                return decision_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_2 = Decision.from_dict(data)

                return decision_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            decision_type_3 = QueueDecision.from_dict(data)

            return decision_type_3

        decision = _parse_decision(d.pop("decision"))

        def _parse_token(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        token = _parse_token(d.pop("token", UNSET))

        run_started = cls(
            id=id,
            workload=workload,
            agent=agent,
            decision=decision,
            token=token,
        )

        run_started.additional_properties = d
        return run_started

    @property
    def additional_keys(self) -> list[str]:
        return list(self.additional_properties.keys())

    def __getitem__(self, key: str) -> Any:
        return self.additional_properties[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self.additional_properties[key] = value

    def __delitem__(self, key: str) -> None:
        del self.additional_properties[key]

    def __contains__(self, key: str) -> bool:
        return key in self.additional_properties
