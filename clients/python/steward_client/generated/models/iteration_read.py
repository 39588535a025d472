from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_decision import ClusterDecision
    from ..models.cluster_report import ClusterReport
    from ..models.decision import Decision
    from ..models.inference_decision import InferenceDecision
    from ..models.inference_report import InferenceReport
    from ..models.iteration_read_decision_type_1 import IterationReadDecisionType1
    from ..models.iteration_read_report_type_1 import IterationReadReportType1
    from ..models.iteration_report import IterationReport
    from ..models.queue_decision import QueueDecision
    from ..models.queue_report import QueueReport


T = TypeVar("T", bound="IterationRead")


@_attrs_define
class IterationRead:
    """A reported iteration and its decision; what can't be read is returned as stored."""

    iteration: int
    report: ClusterReport | InferenceReport | IterationReadReportType1 | IterationReport | QueueReport
    decision: ClusterDecision | Decision | InferenceDecision | IterationReadDecisionType1 | QueueDecision
    reported_at: datetime.datetime
    problem: None | str | Unset = UNSET
    """ Why the report or decision can't be read, e.g. its kind isn't installed. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.cluster_report import ClusterReport  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415
        from ..models.inference_report import InferenceReport  # noqa: PLC0415
        from ..models.iteration_report import IterationReport  # noqa: PLC0415
        from ..models.queue_decision import QueueDecision  # noqa: PLC0415
        from ..models.queue_report import QueueReport  # noqa: PLC0415

        iteration = self.iteration

        report: dict[str, Any]
        if isinstance(self.report, ClusterReport):
            report = self.report.to_dict()
        elif isinstance(self.report, InferenceReport):
            report = self.report.to_dict()
        elif isinstance(self.report, IterationReport):
            report = self.report.to_dict()
        elif isinstance(self.report, QueueReport):
            report = self.report.to_dict()
        else:
            report = self.report.to_dict()

        decision: dict[str, Any]
        if isinstance(self.decision, ClusterDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, InferenceDecision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, Decision):
            decision = self.decision.to_dict()
        elif isinstance(self.decision, QueueDecision):
            decision = self.decision.to_dict()
        else:
            decision = self.decision.to_dict()

        reported_at = self.reported_at.isoformat()

        problem: None | str | Unset
        if isinstance(self.problem, Unset):
            problem = UNSET
        else:
            problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "iteration": iteration,
                "report": report,
                "decision": decision,
                "reported_at": reported_at,
            }
        )
        if problem is not UNSET:
            field_dict["problem"] = problem

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_decision import ClusterDecision  # noqa: PLC0415
        from ..models.cluster_report import ClusterReport  # noqa: PLC0415
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.inference_decision import InferenceDecision  # noqa: PLC0415
        from ..models.inference_report import InferenceReport  # noqa: PLC0415
        from ..models.iteration_read_decision_type_1 import IterationReadDecisionType1  # noqa: PLC0415
        from ..models.iteration_read_report_type_1 import IterationReadReportType1  # noqa: PLC0415
        from ..models.iteration_report import IterationReport  # noqa: PLC0415
        from ..models.queue_decision import QueueDecision  # noqa: PLC0415
        from ..models.queue_report import QueueReport  # noqa: PLC0415

        d = dict(src_dict)
        iteration = d.pop("iteration")

        def _parse_report(
            data: object,
        ) -> ClusterReport | InferenceReport | IterationReadReportType1 | IterationReport | QueueReport:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0_type_0 = ClusterReport.from_dict(data)

                return report_type_0_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0_type_1 = InferenceReport.from_dict(data)

                return report_type_0_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0_type_2 = IterationReport.from_dict(data)

                return report_type_0_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                report_type_0_type_3 = QueueReport.from_dict(data)

                return report_type_0_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            report_type_1 = IterationReadReportType1.from_dict(data)

            return report_type_1

        report = _parse_report(d.pop("report"))

        def _parse_decision(
            data: object,
        ) -> ClusterDecision | Decision | InferenceDecision | IterationReadDecisionType1 | QueueDecision:
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0_type_0 = ClusterDecision.from_dict(data)

                return decision_type_0_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0_type_1 = InferenceDecision.from_dict(data)

                return decision_type_0_type_1
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0_type_2 = Decision.from_dict(data)

                return decision_type_0_type_2
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                decision_type_0_type_3 = QueueDecision.from_dict(data)

                return decision_type_0_type_3
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            if not isinstance(data, dict):
                raise TypeError()
            decision_type_1 = IterationReadDecisionType1.from_dict(data)

            return decision_type_1

        decision = _parse_decision(d.pop("decision"))

        reported_at = datetime.datetime.fromisoformat(d.pop("reported_at"))

        def _parse_problem(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        problem = _parse_problem(d.pop("problem", UNSET))

        iteration_read = cls(
            iteration=iteration,
            report=report,
            decision=decision,
            reported_at=reported_at,
            problem=problem,
        )

        iteration_read.additional_properties = d
        return iteration_read

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
