from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.decision_source import DecisionSource
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cap_use import CapUse
    from ..models.contingency import Contingency
    from ..models.decision_allocation import DecisionAllocation
    from ..models.decision_chances import DecisionChances
    from ..models.decision_delta import DecisionDelta
    from ..models.decision_predicted import DecisionPredicted
    from ..models.decision_reason import DecisionReason
    from ..models.drift_notice import DriftNotice
    from ..models.not_granted import NotGranted
    from ..models.shadow_step import ShadowStep


T = TypeVar("T", bound="Decision")


@_attrs_define
class Decision:
    """The allocation of the next iteration with its reason, predicted metrics in their units, and chances (0 to 1)."""

    run: None | str
    """ The run; null if the state was given in full. """
    workload: str
    reported: int | None
    """ Last reported iteration; null before the first. """
    iteration: int
    """ Iteration that this decision is for. """
    noop: bool
    """ Whether nothing changes. """
    source: DecisionSource
    """ What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's step, or a
    fallback after a failure. """
    agent: int | None
    """ Version of the promoted agent, if any. """
    policy: str
    """ Name of the deciding policy. """
    reason: DecisionReason
    """ Reason as a stable code and as text. """
    valid_for_iterations: int
    """ Number of iterations it is valid for; 0 once the run is complete. """
    decided_at: datetime.datetime
    kind: Literal["iterative"]
    allocation: DecisionAllocation
    """ Allocation by resource. """
    delta: DecisionDelta
    """ Change from the reported allocation. """
    predicted: DecisionPredicted
    """ Predicted metrics of the next iteration at this allocation. """
    caps: list[CapUse] | Unset = UNSET
    """ The run's caps, and what is left of them; absent without caps. """
    stop: bool | Unset = False
    """ Whether the run is to stop, because a cap is reached: end its process, and the run as `cancelled`. """
    drift: list[DriftNotice] | None | Unset = UNSET
    """ Drift detected by this report; returned once. """
    chances: DecisionChances | Unset = UNSET
    """ Probability of meeting each target at this allocation: run targets by the end of the run if it is held
    (where iterations are known to differ: if the best allocation to hold follows it), iteration targets in the next
    iteration. None before the first model or for set points. """
    contingencies: list[Contingency] | Unset = UNSET
    """ What to do if the iteration isn't over after so many seconds, by ascending time: the launcher changes the
    allocation by itself, also while the service is away, and reports the `segments`. Offered where few long
    iterations are left and the change is expected to pay. """
    shadow: None | ShadowStep | Unset = UNSET
    """ Decision of the run's shadow, if any. """
    granted: None | NotGranted | Unset = UNSET
    """ What is there, if something was requested and isn't; absent if all of it is. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.not_granted import NotGranted  # noqa: PLC0415
        from ..models.shadow_step import ShadowStep  # noqa: PLC0415

        run: None | str
        run = self.run

        workload = self.workload

        reported: int | None
        reported = self.reported

        iteration = self.iteration

        noop = self.noop

        source = self.source.value

        agent: int | None
        agent = self.agent

        policy = self.policy

        reason = self.reason.to_dict()

        valid_for_iterations = self.valid_for_iterations

        decided_at = self.decided_at.isoformat()

        kind = self.kind

        allocation = self.allocation.to_dict()

        delta = self.delta.to_dict()

        predicted = self.predicted.to_dict()

        caps: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.caps, Unset):
            caps = []
            for caps_item_data in self.caps:
                caps_item = caps_item_data.to_dict()
                caps.append(caps_item)

        stop = self.stop

        drift: list[dict[str, Any]] | None | Unset
        if isinstance(self.drift, Unset):
            drift = UNSET
        elif isinstance(self.drift, list):
            drift = []
            for drift_type_0_item_data in self.drift:
                drift_type_0_item = drift_type_0_item_data.to_dict()
                drift.append(drift_type_0_item)

        else:
            drift = self.drift

        chances: dict[str, Any] | Unset = UNSET
        if not isinstance(self.chances, Unset):
            chances = self.chances.to_dict()

        contingencies: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.contingencies, Unset):
            contingencies = []
            for contingencies_item_data in self.contingencies:
                contingencies_item = contingencies_item_data.to_dict()
                contingencies.append(contingencies_item)

        shadow: dict[str, Any] | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        elif isinstance(self.shadow, ShadowStep):
            shadow = self.shadow.to_dict()
        else:
            shadow = self.shadow

        granted: dict[str, Any] | None | Unset
        if isinstance(self.granted, Unset):
            granted = UNSET
        elif isinstance(self.granted, NotGranted):
            granted = self.granted.to_dict()
        else:
            granted = self.granted

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "run": run,
                "workload": workload,
                "reported": reported,
                "iteration": iteration,
                "noop": noop,
                "source": source,
                "agent": agent,
                "policy": policy,
                "reason": reason,
                "valid_for_iterations": valid_for_iterations,
                "decided_at": decided_at,
                "kind": kind,
                "allocation": allocation,
                "delta": delta,
                "predicted": predicted,
            }
        )
        if caps is not UNSET:
            field_dict["caps"] = caps
        if stop is not UNSET:
            field_dict["stop"] = stop
        if drift is not UNSET:
            field_dict["drift"] = drift
        if chances is not UNSET:
            field_dict["chances"] = chances
        if contingencies is not UNSET:
            field_dict["contingencies"] = contingencies
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if granted is not UNSET:
            field_dict["granted"] = granted

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cap_use import CapUse  # noqa: PLC0415
        from ..models.contingency import Contingency  # noqa: PLC0415
        from ..models.decision_allocation import DecisionAllocation  # noqa: PLC0415
        from ..models.decision_chances import DecisionChances  # noqa: PLC0415
        from ..models.decision_delta import DecisionDelta  # noqa: PLC0415
        from ..models.decision_predicted import DecisionPredicted  # noqa: PLC0415
        from ..models.decision_reason import DecisionReason  # noqa: PLC0415
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.not_granted import NotGranted  # noqa: PLC0415
        from ..models.shadow_step import ShadowStep  # noqa: PLC0415

        d = dict(src_dict)

        def _parse_run(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        run = _parse_run(d.pop("run"))

        workload = d.pop("workload")

        def _parse_reported(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        reported = _parse_reported(d.pop("reported"))

        iteration = d.pop("iteration")

        noop = d.pop("noop")

        source = DecisionSource(d.pop("source"))

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        policy = d.pop("policy")

        reason = DecisionReason.from_dict(d.pop("reason"))

        valid_for_iterations = d.pop("valid_for_iterations")

        decided_at = datetime.datetime.fromisoformat(d.pop("decided_at"))

        kind = cast(Literal["iterative"], d.pop("kind"))
        if kind != "iterative":
            raise ValueError(f"kind must match const 'iterative', got '{kind}'")

        allocation = DecisionAllocation.from_dict(d.pop("allocation"))

        delta = DecisionDelta.from_dict(d.pop("delta"))

        predicted = DecisionPredicted.from_dict(d.pop("predicted"))

        _caps = d.pop("caps", UNSET)
        caps: list[CapUse] | Unset = UNSET
        if _caps is not UNSET:
            caps = []
            for caps_item_data in _caps:
                caps_item = CapUse.from_dict(caps_item_data)

                caps.append(caps_item)

        stop = d.pop("stop", UNSET)

        def _parse_drift(data: object) -> list[DriftNotice] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                drift_type_0 = []
                _drift_type_0 = data
                for drift_type_0_item_data in _drift_type_0:
                    drift_type_0_item = DriftNotice.from_dict(drift_type_0_item_data)

                    drift_type_0.append(drift_type_0_item)

                return drift_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[DriftNotice] | None | Unset, data)

        drift = _parse_drift(d.pop("drift", UNSET))

        _chances = d.pop("chances", UNSET)
        chances: DecisionChances | Unset
        if isinstance(_chances, Unset):
            chances = UNSET
        else:
            chances = DecisionChances.from_dict(_chances)

        _contingencies = d.pop("contingencies", UNSET)
        contingencies: list[Contingency] | Unset = UNSET
        if _contingencies is not UNSET:
            contingencies = []
            for contingencies_item_data in _contingencies:
                contingencies_item = Contingency.from_dict(contingencies_item_data)

                contingencies.append(contingencies_item)

        def _parse_shadow(data: object) -> None | ShadowStep | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shadow_type_0 = ShadowStep.from_dict(data)

                return shadow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShadowStep | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        def _parse_granted(data: object) -> None | NotGranted | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                granted_type_0 = NotGranted.from_dict(data)

                return granted_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | NotGranted | Unset, data)

        granted = _parse_granted(d.pop("granted", UNSET))

        decision = cls(
            run=run,
            workload=workload,
            reported=reported,
            iteration=iteration,
            noop=noop,
            source=source,
            agent=agent,
            policy=policy,
            reason=reason,
            valid_for_iterations=valid_for_iterations,
            decided_at=decided_at,
            kind=kind,
            allocation=allocation,
            delta=delta,
            predicted=predicted,
            caps=caps,
            stop=stop,
            drift=drift,
            chances=chances,
            contingencies=contingencies,
            shadow=shadow,
            granted=granted,
        )

        decision.additional_properties = d
        return decision

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
