from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.monthly_savings import MonthlySavings
    from ..models.stopped_runs import StoppedRuns


T = TypeVar("T", bound="WorkloadSavings")


@_attrs_define
class WorkloadSavings:
    """Savings of a workload's finished runs, by month."""

    workload: str
    stopped: list[StoppedRuns]
    """ Runs stopped at a cap, newest first, at most 24 months. """
    months: list[MonthlySavings]
    """ Newest first, at most 24 months. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        stopped = []
        for stopped_item_data in self.stopped:
            stopped_item = stopped_item_data.to_dict()
            stopped.append(stopped_item)

        months = []
        for months_item_data in self.months:
            months_item = months_item_data.to_dict()
            months.append(months_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "stopped": stopped,
                "months": months,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.monthly_savings import MonthlySavings  # noqa: PLC0415
        from ..models.stopped_runs import StoppedRuns  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        stopped = []
        _stopped = d.pop("stopped")
        for stopped_item_data in _stopped:
            stopped_item = StoppedRuns.from_dict(stopped_item_data)

            stopped.append(stopped_item)

        months = []
        _months = d.pop("months")
        for months_item_data in _months:
            months_item = MonthlySavings.from_dict(months_item_data)

            months.append(months_item)

        workload_savings = cls(
            workload=workload,
            stopped=stopped,
            months=months,
        )

        workload_savings.additional_properties = d
        return workload_savings

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
