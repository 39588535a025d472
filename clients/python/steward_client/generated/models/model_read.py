from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.model_read_report import ModelReadReport


T = TypeVar("T", bound="ModelRead")


@_attrs_define
class ModelRead:
    """One version of a workload's domain model, with the report of its fit."""

    workload: str
    version: int
    """ Counts from 1. """
    spec_version: int
    """ Version of the spec that it was fitted under. """
    report: ModelReadReport
    """ Family, candidates with their errors, error and interval coverage per metric, run effect, residual spread,
    cost of a change, seconds of one simulated iteration, and what could not be explained. """
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        version = self.version

        spec_version = self.spec_version

        report = self.report.to_dict()

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "version": version,
                "spec_version": spec_version,
                "report": report,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.model_read_report import ModelReadReport  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        version = d.pop("version")

        spec_version = d.pop("spec_version")

        report = ModelReadReport.from_dict(d.pop("report"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        model_read = cls(
            workload=workload,
            version=version,
            spec_version=spec_version,
            report=report,
            created_at=created_at,
        )

        model_read.additional_properties = d
        return model_read

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
