from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.evaluation_report_report import EvaluationReportReport
    from ..models.evaluation_report_request import EvaluationReportRequest
    from ..models.verdict import Verdict


T = TypeVar("T", bound="EvaluationReport")


@_attrs_define
class EvaluationReport:
    """One evaluation, with all its figures."""

    id: str
    workload: str
    spec_version: int
    """ Version of the spec used in the evaluation. """
    model_version: int
    """ Version of the domain model used in the evaluation. """
    request: EvaluationReportRequest
    """ The request, with agents and model resolved to versions. """
    verdicts: list[Verdict]
    created_at: datetime.datetime
    report: EvaluationReportReport
    """ By level: returns beside every baseline with 95 % intervals, interquartile means, probability of
    improvement, and generalisation gap; reward terms, performance profiles and aliasing. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        workload = self.workload

        spec_version = self.spec_version

        model_version = self.model_version

        request = self.request.to_dict()

        verdicts = []
        for verdicts_item_data in self.verdicts:
            verdicts_item = verdicts_item_data.to_dict()
            verdicts.append(verdicts_item)

        created_at = self.created_at.isoformat()

        report = self.report.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "workload": workload,
                "spec_version": spec_version,
                "model_version": model_version,
                "request": request,
                "verdicts": verdicts,
                "created_at": created_at,
                "report": report,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.evaluation_report_report import EvaluationReportReport  # noqa: PLC0415
        from ..models.evaluation_report_request import EvaluationReportRequest  # noqa: PLC0415
        from ..models.verdict import Verdict  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        workload = d.pop("workload")

        spec_version = d.pop("spec_version")

        model_version = d.pop("model_version")

        request = EvaluationReportRequest.from_dict(d.pop("request"))

        verdicts = []
        _verdicts = d.pop("verdicts")
        for verdicts_item_data in _verdicts:
            verdicts_item = Verdict.from_dict(verdicts_item_data)

            verdicts.append(verdicts_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        report = EvaluationReportReport.from_dict(d.pop("report"))

        evaluation_report = cls(
            id=id,
            workload=workload,
            spec_version=spec_version,
            model_version=model_version,
            request=request,
            verdicts=verdicts,
            created_at=created_at,
            report=report,
        )

        evaluation_report.additional_properties = d
        return evaluation_report

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
