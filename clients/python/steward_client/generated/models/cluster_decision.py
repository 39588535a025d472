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

from ..models.cluster_decision_source import ClusterDecisionSource
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cap_use import CapUse
    from ..models.drift_notice import DriftNotice
    from ..models.job_change import JobChange
    from ..models.job_start import JobStart
    from ..models.reason import Reason
    from ..models.shadow_rule import ShadowRule


T = TypeVar("T", bound="ClusterDecision")


@_attrs_define
class ClusterDecision:
    """GPUs and nodes of each job from now on; jobs not listed keep what they have."""

    run: None | str
    """ The run; null if the state was given in full. """
    workload: str
    reported: int | None
    """ Last reported iteration; null before the first. """
    iteration: int
    """ Iteration that this decision is for. """
    noop: bool
    """ Whether nothing changes. """
    source: ClusterDecisionSource
    """ What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's step, or a
    fallback after a failure. """
    agent: int | None
    """ Version of the promoted agent, if any. """
    policy: str
    """ Name of the deciding policy. """
    reason: Reason
    """ Reason as a stable code and as text. """
    valid_for_iterations: int
    """ Number of iterations it is valid for; 0 once the run is complete. """
    decided_at: datetime.datetime
    kind: Literal["cluster"]
    at: float
    """ Time of the report, in seconds since the run's start. """
    changes: list[JobChange]
    running: int
    """ Number of running jobs. """
    waiting: int
    """ Number of pending jobs. """
    free: int
    """ Number of unassigned GPUs. """
    wake_at: float | None
    """ Latest time for the next report; null if there are no jobs. """
    rule: str
    """ Rule that assigned the GPUs: the heuristic's, or `weighed`, by an agent. """
    caps: list[CapUse] | Unset = UNSET
    """ The run's caps, and what is left of them; absent without caps. """
    stop: bool | Unset = False
    """ Whether the run is to stop, because a cap is reached: end its process, and the run as `cancelled`. """
    drift: list[DriftNotice] | None | Unset = UNSET
    """ Drift detected by this report; returned once. """
    starts: list[JobStart] | Unset = UNSET
    """ Pending jobs in the order of their expected starts, as far as known; at most 100. """
    shadow: None | ShadowRule | Unset = UNSET
    """ Decision of the run's shadow, if any. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shadow_rule import ShadowRule  # noqa: PLC0415

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

        at = self.at

        changes = []
        for changes_item_data in self.changes:
            changes_item = changes_item_data.to_dict()
            changes.append(changes_item)

        running = self.running

        waiting = self.waiting

        free = self.free

        wake_at: float | None
        wake_at = self.wake_at

        rule = self.rule

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

        starts: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.starts, Unset):
            starts = []
            for starts_item_data in self.starts:
                starts_item = starts_item_data.to_dict()
                starts.append(starts_item)

        shadow: dict[str, Any] | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        elif isinstance(self.shadow, ShadowRule):
            shadow = self.shadow.to_dict()
        else:
            shadow = self.shadow

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
                "at": at,
                "changes": changes,
                "running": running,
                "waiting": waiting,
                "free": free,
                "wake_at": wake_at,
                "rule": rule,
            }
        )
        if caps is not UNSET:
            field_dict["caps"] = caps
        if stop is not UNSET:
            field_dict["stop"] = stop
        if drift is not UNSET:
            field_dict["drift"] = drift
        if starts is not UNSET:
            field_dict["starts"] = starts
        if shadow is not UNSET:
            field_dict["shadow"] = shadow

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cap_use import CapUse  # noqa: PLC0415
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.job_change import JobChange  # noqa: PLC0415
        from ..models.job_start import JobStart  # noqa: PLC0415
        from ..models.reason import Reason  # noqa: PLC0415
        from ..models.shadow_rule import ShadowRule  # noqa: PLC0415

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

        source = ClusterDecisionSource(d.pop("source"))

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        policy = d.pop("policy")

        reason = Reason.from_dict(d.pop("reason"))

        valid_for_iterations = d.pop("valid_for_iterations")

        decided_at = datetime.datetime.fromisoformat(d.pop("decided_at"))

        kind = cast(Literal["cluster"], d.pop("kind"))
        if kind != "cluster":
            raise ValueError(f"kind must match const 'cluster', got '{kind}'")

        at = d.pop("at")

        changes = []
        _changes = d.pop("changes")
        for changes_item_data in _changes:
            changes_item = JobChange.from_dict(changes_item_data)

            changes.append(changes_item)

        running = d.pop("running")

        waiting = d.pop("waiting")

        free = d.pop("free")

        def _parse_wake_at(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        wake_at = _parse_wake_at(d.pop("wake_at"))

        rule = d.pop("rule")

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

        _starts = d.pop("starts", UNSET)
        starts: list[JobStart] | Unset = UNSET
        if _starts is not UNSET:
            starts = []
            for starts_item_data in _starts:
                starts_item = JobStart.from_dict(starts_item_data)

                starts.append(starts_item)

        def _parse_shadow(data: object) -> None | ShadowRule | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shadow_type_0 = ShadowRule.from_dict(data)

                return shadow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShadowRule | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        cluster_decision = cls(
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
            at=at,
            changes=changes,
            running=running,
            waiting=waiting,
            free=free,
            wake_at=wake_at,
            rule=rule,
            caps=caps,
            stop=stop,
            drift=drift,
            starts=starts,
            shadow=shadow,
        )

        cluster_decision.additional_properties = d
        return cluster_decision

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
