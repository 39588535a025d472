from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.run_read_outcome import RunReadOutcome
from ..models.run_read_state import RunReadState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_decision import ClusterDecision
    from ..models.decision import Decision
    from ..models.drift_notice import DriftNotice
    from ..models.inference_decision import InferenceDecision
    from ..models.queue_decision import QueueDecision
    from ..models.run_read_start import RunReadStart
    from ..models.savings import Savings


T = TypeVar("T", bound="RunRead")


@_attrs_define
class RunRead:
    """A run: its outcome so far, its last decision, and detected drift."""

    id: str
    workload: str
    state: RunReadState
    outcome: RunReadOutcome
    """ While it runs: `on_track`, `at_risk` of missing a target, or `stale` (no report for too long). Once ended:
    `met` or `missed` its targets, `failed`, `cancelled`, `cap_reached` (stopped at a cap), or `completed` without a
    target to judge by. """
    outcome_reason: None | str
    """ Reason of the outcome; null: none. """
    spec_version: int
    """ Version of the workload's spec when the run started. """
    agent: int | None
    """ Version of the agent when the run started. """
    start: RunReadStart
    """ Start parameters other than workload and shadow. """
    iterations: int
    """ Number of the next iteration: those reported, plus those before the run's first. """
    decision: ClusterDecision | Decision | InferenceDecision | QueueDecision
    """ The last decision. """
    drift: list[DriftNotice]
    """ Detected drift, oldest first. """
    savings: None | Savings
    """ Once it has finished: what it took and cost beside other allocations, by the domain model; null before, and
    where its kind, model or reports can't tell. """
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    shadow: int | None | Unset = UNSET
    """ Version of the agent consulted as a shadow. """
    output: None | str | Unset = UNSET
    """ Last lines of its process's output, as sent with its end; null: not sent. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415
        from ..models.savings import Savings  # noqa: PLC0415

        id = self.id

        workload = self.workload

        state = self.state.value

        outcome = self.outcome.value

        outcome_reason: None | str
        outcome_reason = self.outcome_reason

        spec_version = self.spec_version

        agent: int | None
        agent = self.agent

        start = self.start.to_dict()

        iterations = self.iterations

        decision: dict[str, Any]
        if isinstance(self.decision, ClusterDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, InferenceDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, Decision):
            decision = self.decision.to_dict()
        else:
            decision = self.decision.to_dict()

        drift = []
        for drift_item_data in self.drift:
            drift_item = drift_item_data.to_dict()
            drift.append(drift_item)

        savings: dict[str, Any] | None
        if isinstance(self.savings, Savings):
            savings = self.savings.to_dict()
        else:
            savings = self.savings

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        shadow: int | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        else:
            shadow = self.shadow

        output: None | str | Unset
        if isinstance(self.output, Unset):
            output = UNSET
        else:
            output = self.output

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "workload": workload,
                "state": state,
                "outcome": outcome,
                "outcome_reason": outcome_reason,
                "spec_version": spec_version,
                "agent": agent,
                "start": start,
                "iterations": iterations,
                "decision": decision,
                "drift": drift,
                "savings": savings,
                "created_at": created_at,
                "finished_at": finished_at,
            }
        )
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if output is not UNSET:
            field_dict["output"] = output

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415
        from ..models.queue_decision import QueueDecision  # noqa: PLC0415
        from ..models.run_read_start import RunReadStart  # noqa: PLC0415
        from ..models.savings import Savings  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        workload = d.pop("workload")

        state = RunReadState(d.pop("state"))

        outcome = RunReadOutcome(d.pop("outcome"))

        def _parse_outcome_reason(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        outcome_reason = _parse_outcome_reason(d.pop("outcome_reason"))

        spec_version = d.pop("spec_version")

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        start = RunReadStart.from_dict(d.pop("start"))

        iterations = d.pop("iterations")

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

        drift = []
        _drift = d.pop("drift")
        for drift_item_data in _drift:
            drift_item = DriftNotice.from_dict(drift_item_data)

            drift.append(drift_item)

        def _parse_savings(data: object) -> None | Savings:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                savings_type_0 = Savings.from_dict(data)

                return savings_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Savings, data)

        savings = _parse_savings(d.pop("savings"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        def _parse_shadow(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        def _parse_output(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        output = _parse_output(d.pop("output", UNSET))

        run_read = cls(
            id=id,
            workload=workload,
            state=state,
            outcome=outcome,
            outcome_reason=outcome_reason,
            spec_version=spec_version,
            agent=agent,
            start=start,
            iterations=iterations,
            decision=decision,
            drift=drift,
            savings=savings,
            created_at=created_at,
            finished_at=finished_at,
            shadow=shadow,
            output=output,
        )

        run_read.additional_properties = d
        return run_read

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
