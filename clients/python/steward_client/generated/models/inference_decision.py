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

from ..models.inference_decision_source import InferenceDecisionSource
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.batch_start import BatchStart
    from ..models.cap_use import CapUse
    from ..models.drift_notice import DriftNotice
    from ..models.drop import Drop
    from ..models.inference_decision_expected_type_0 import InferenceDecisionExpectedType0
    from ..models.inference_decision_quality import InferenceDecisionQuality
    from ..models.inference_decision_servers import InferenceDecisionServers
    from ..models.inference_decision_waiting import InferenceDecisionWaiting
    from ..models.reason import Reason
    from ..models.shadow_starts import ShadowStarts


T = TypeVar("T", bound="InferenceDecision")


@_attrs_define
class InferenceDecision:
    """Batches to start now and on which servers, requests to drop, and how many servers to run."""

    run: None | str
    """ The run; null if the state was given in full. """
    workload: str
    reported: int | None
    """ Last reported iteration; null before the first. """
    iteration: int
    """ Iteration that this decision is for. """
    noop: bool
    """ Whether nothing changes. """
    source: InferenceDecisionSource
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
    kind: Literal["inference"]
    at: float
    """ Time of the report, in seconds since the run's start. """
    start: list[BatchStart]
    drop: list[Drop]
    servers: InferenceDecisionServers
    """ Number of servers to run per class, including those starting. """
    wake_at: float | None
    """ Latest time for the next report; null: at the next event. """
    waiting: InferenceDecisionWaiting
    """ Waiting requests by user, after this decision. """
    quality: InferenceDecisionQuality
    """ Recent mean response quality by user; 1 before the first response. """
    caps: list[CapUse] | Unset = UNSET
    """ The run's caps, and what is left of them; absent without caps. """
    stop: bool | Unset = False
    """ Whether the run is to stop, because a cap is reached: end its process, and the run as `cancelled`. """
    drift: list[DriftNotice] | None | Unset = UNSET
    """ Drift detected by this report; returned once. """
    turn_on: list[str] | Unset = UNSET
    """ Servers to start now; at most 4 are turned on or off at once. """
    turn_off: list[str] | Unset = UNSET
    """ Servers to stop now: idle ones, or such as are starting. """
    expected: InferenceDecisionExpectedType0 | None | Unset = UNSET
    """ Expected seconds per batch, by server class, variant and size, for clients that decide by themselves: in the
    first decision of a carried run, if there is a domain model. """
    shadow: None | ShadowStarts | Unset = UNSET
    """ Decision of the run's shadow, if any. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.inference_decision_expected_type_0 import (
            InferenceDecisionExpectedType0,  # noqa: PLC0415
        )
        from ..models.shadow_starts import ShadowStarts  # noqa: PLC0415

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

        start = []
        for start_item_data in self.start:
            start_item = start_item_data.to_dict()
            start.append(start_item)

        drop = []
        for drop_item_data in self.drop:
            drop_item = drop_item_data.to_dict()
            drop.append(drop_item)

        servers = self.servers.to_dict()

        wake_at: float | None
        wake_at = self.wake_at

        waiting = self.waiting.to_dict()

        quality = self.quality.to_dict()

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

        turn_on: list[str] | Unset = UNSET
        if not isinstance(self.turn_on, Unset):
            turn_on = self.turn_on

        turn_off: list[str] | Unset = UNSET
        if not isinstance(self.turn_off, Unset):
            turn_off = self.turn_off

        expected: dict[str, Any] | None | Unset
        if isinstance(self.expected, Unset):
            expected = UNSET
        elif isinstance(self.expected, InferenceDecisionExpectedType0):
            expected = self.expected.to_dict()
        else:
            expected = self.expected

        shadow: dict[str, Any] | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        elif isinstance(self.shadow, ShadowStarts):
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
                "start": start,
                "drop": drop,
                "servers": servers,
                "wake_at": wake_at,
                "waiting": waiting,
                "quality": quality,
            }
        )
        if caps is not UNSET:
            field_dict["caps"] = caps
        if stop is not UNSET:
            field_dict["stop"] = stop
        if drift is not UNSET:
            field_dict["drift"] = drift
        if turn_on is not UNSET:
            field_dict["turn_on"] = turn_on
        if turn_off is not UNSET:
            field_dict["turn_off"] = turn_off
        if expected is not UNSET:
            field_dict["expected"] = expected
        if shadow is not UNSET:
            field_dict["shadow"] = shadow

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_start import BatchStart  # noqa: PLC0415
        from ..models.cap_use import CapUse  # noqa: PLC0415
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.drop import Drop  # noqa: PLC0415
        from ..models.inference_decision_expected_type_0 import (
            InferenceDecisionExpectedType0,  # noqa: PLC0415
        )
        from ..models.inference_decision_quality import InferenceDecisionQuality  # noqa: PLC0415
        from ..models.inference_decision_servers import InferenceDecisionServers  # noqa: PLC0415
        from ..models.inference_decision_waiting import InferenceDecisionWaiting  # noqa: PLC0415
        from ..models.reason import Reason  # noqa: PLC0415
        from ..models.shadow_starts import ShadowStarts  # noqa: PLC0415

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

        source = InferenceDecisionSource(d.pop("source"))

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        policy = d.pop("policy")

        reason = Reason.from_dict(d.pop("reason"))

        valid_for_iterations = d.pop("valid_for_iterations")

        decided_at = datetime.datetime.fromisoformat(d.pop("decided_at"))

        kind = cast(Literal["inference"], d.pop("kind"))
        if kind != "inference":
            raise ValueError(f"kind must match const 'inference', got '{kind}'")

        at = d.pop("at")

        start = []
        _start = d.pop("start")
        for start_item_data in _start:
            start_item = BatchStart.from_dict(start_item_data)

            start.append(start_item)

        drop = []
        _drop = d.pop("drop")
        for drop_item_data in _drop:
            drop_item = Drop.from_dict(drop_item_data)

            drop.append(drop_item)

        servers = InferenceDecisionServers.from_dict(d.pop("servers"))

        def _parse_wake_at(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        wake_at = _parse_wake_at(d.pop("wake_at"))

        waiting = InferenceDecisionWaiting.from_dict(d.pop("waiting"))

        quality = InferenceDecisionQuality.from_dict(d.pop("quality"))

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

        turn_on = cast(list[str], d.pop("turn_on", UNSET))

        turn_off = cast(list[str], d.pop("turn_off", UNSET))

        def _parse_expected(data: object) -> InferenceDecisionExpectedType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                expected_type_0 = InferenceDecisionExpectedType0.from_dict(data)

                return expected_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(InferenceDecisionExpectedType0 | None | Unset, data)

        expected = _parse_expected(d.pop("expected", UNSET))

        def _parse_shadow(data: object) -> None | ShadowStarts | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shadow_type_0 = ShadowStarts.from_dict(data)

                return shadow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShadowStarts | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        inference_decision = cls(
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
            start=start,
            drop=drop,
            servers=servers,
            wake_at=wake_at,
            waiting=waiting,
            quality=quality,
            caps=caps,
            stop=stop,
            drift=drift,
            turn_on=turn_on,
            turn_off=turn_off,
            expected=expected,
            shadow=shadow,
        )

        inference_decision.additional_properties = d
        return inference_decision

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
