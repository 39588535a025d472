from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.decision import Decision
    from ..models.iteration_report import IterationReport


T = TypeVar("T", bound="IterationRead")


@_attrs_define
class IterationRead:
    """A reported iteration and what it was answered with."""

    iteration: int
    report: IterationReport
    """ What one iteration used and measured. """
    decision: Decision
    """ The next resource step. """
    reported_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        iteration = self.iteration

        report = self.report.to_dict()

        decision = self.decision.to_dict()

        reported_at = self.reported_at.isoformat()

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

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.decision import Decision  # noqa: PLC0415
        from ..models.iteration_report import IterationReport  # noqa: PLC0415

        d = dict(src_dict)
        iteration = d.pop("iteration")

        report = IterationReport.from_dict(d.pop("report"))

        decision = Decision.from_dict(d.pop("decision"))

        reported_at = datetime.datetime.fromisoformat(d.pop("reported_at"))

        iteration_read = cls(
            iteration=iteration,
            report=report,
            decision=decision,
            reported_at=reported_at,
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
