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

from ..models.queue_decision_source import QueueDecisionSource
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cap_use import CapUse
    from ..models.drift_notice import DriftNotice
    from ..models.node_steps import NodeSteps
    from ..models.placement import Placement
    from ..models.queue_reason import QueueReason
    from ..models.queue_shadow import QueueShadow
    from ..models.report_warning import ReportWarning


T = TypeVar("T", bound="QueueDecision")


@_attrs_define
class QueueDecision:
    """Ready tasks to start now and where, and nodes to request or release."""

    run: None | str
    """ The run; null if the state was given in full. """
    workload: str
    reported: int | None
    """ Last reported iteration; null before the first. """
    iteration: int
    """ Iteration that this decision is for. """
    noop: bool
    """ Whether nothing changes. """
    source: QueueDecisionSource
    """ What decided: the promoted agent, a heuristic in its place, a guard that replaced the policy's step, or a
    fallback after a failure. """
    agent: int | None
    """ Version of the promoted agent, if any. """
    policy: str
    """ Name of the deciding policy. """
    reason: QueueReason
    """ Reason as a stable code and as text, with the figures behind it. """
    valid_for_iterations: int
    """ Number of iterations it is valid for; 0 once the run is complete. """
    decided_at: datetime.datetime
    kind: Literal["workflow"]
    now: float | None
    """ Time of the report. """
    placements: list[Placement]
    nodes: NodeSteps
    """ Nodes to request and to release. """
    warnings: list[ReportWarning]
    caps: list[CapUse] | Unset = UNSET
    """ The run's caps, and what is left of them; absent without caps. """
    stop: bool | Unset = False
    """ Whether the run is to stop, because a cap is reached: end its process, and the run as `cancelled`. """
    drift: list[DriftNotice] | None | Unset = UNSET
    """ Drift detected by this report; returned once. """
    waiting: int | None | Unset = UNSET
    """ Waiting tasks after this decision; null if not counted. """
    running: int | None | Unset = UNSET
    """ Running tasks, including those that start. """
    busy_processors: int | None | Unset = UNSET
    """ Processors used by running tasks. """
    wake_at: float | None | Unset = UNSET
    """ Latest time for the next report: a task starts then, unless one ends before; null: at the next event. """
    shadow: None | QueueShadow | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.queue_shadow import QueueShadow  # noqa: PLC0415

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

        now: float | None
        now = self.now

        placements = []
        for placements_item_data in self.placements:
            placements_item = placements_item_data.to_dict()
            placements.append(placements_item)

        nodes = self.nodes.to_dict()

        warnings = []
        for warnings_item_data in self.warnings:
            warnings_item = warnings_item_data.to_dict()
            warnings.append(warnings_item)

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

        waiting: int | None | Unset
        if isinstance(self.waiting, Unset):
            waiting = UNSET
        else:
            waiting = self.waiting

        running: int | None | Unset
        if isinstance(self.running, Unset):
            running = UNSET
        else:
            running = self.running

        busy_processors: int | None | Unset
        if isinstance(self.busy_processors, Unset):
            busy_processors = UNSET
        else:
            busy_processors = self.busy_processors

        wake_at: float | None | Unset
        if isinstance(self.wake_at, Unset):
            wake_at = UNSET
        else:
            wake_at = self.wake_at

        shadow: dict[str, Any] | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        elif isinstance(self.shadow, QueueShadow):
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
                "now": now,
                "placements": placements,
                "nodes": nodes,
                "warnings": warnings,
            }
        )
        if caps is not UNSET:
            field_dict["caps"] = caps
        if stop is not UNSET:
            field_dict["stop"] = stop
        if drift is not UNSET:
            field_dict["drift"] = drift
        if waiting is not UNSET:
            field_dict["waiting"] = waiting
        if running is not UNSET:
            field_dict["running"] = running
        if busy_processors is not UNSET:
            field_dict["busy_processors"] = busy_processors
        if wake_at is not UNSET:
            field_dict["wake_at"] = wake_at
        if shadow is not UNSET:
            field_dict["shadow"] = shadow

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cap_use import CapUse  # noqa: PLC0415
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.node_steps import NodeSteps  # noqa: PLC0415
        from ..models.placement import Placement  # noqa: PLC0415
        from ..models.queue_reason import QueueReason  # noqa: PLC0415
        from ..models.queue_shadow import QueueShadow  # noqa: PLC0415
        from ..models.report_warning import ReportWarning  # noqa: PLC0415

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

        source = QueueDecisionSource(d.pop("source"))

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        policy = d.pop("policy")

        reason = QueueReason.from_dict(d.pop("reason"))

        valid_for_iterations = d.pop("valid_for_iterations")

        decided_at = datetime.datetime.fromisoformat(d.pop("decided_at"))

        kind = cast(Literal["workflow"], d.pop("kind"))
        if kind != "workflow":
            raise ValueError(f"kind must match const 'workflow', got '{kind}'")

        def _parse_now(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        now = _parse_now(d.pop("now"))

        placements = []
        _placements = d.pop("placements")
        for placements_item_data in _placements:
            placements_item = Placement.from_dict(placements_item_data)

            placements.append(placements_item)

        nodes = NodeSteps.from_dict(d.pop("nodes"))

        warnings = []
        _warnings = d.pop("warnings")
        for warnings_item_data in _warnings:
            warnings_item = ReportWarning.from_dict(warnings_item_data)

            warnings.append(warnings_item)

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

        def _parse_waiting(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        waiting = _parse_waiting(d.pop("waiting", UNSET))

        def _parse_running(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        running = _parse_running(d.pop("running", UNSET))

        def _parse_busy_processors(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        busy_processors = _parse_busy_processors(d.pop("busy_processors", UNSET))

        def _parse_wake_at(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        wake_at = _parse_wake_at(d.pop("wake_at", UNSET))

        def _parse_shadow(data: object) -> None | QueueShadow | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                shadow_type_0 = QueueShadow.from_dict(data)

                return shadow_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | QueueShadow | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        queue_decision = cls(
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
            now=now,
            placements=placements,
            nodes=nodes,
            warnings=warnings,
            caps=caps,
            stop=stop,
            drift=drift,
            waiting=waiting,
            running=running,
            busy_processors=busy_processors,
            wake_at=wake_at,
            shadow=shadow,
        )

        queue_decision.additional_properties = d
        return queue_decision

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
