from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.report_allocation import ReportAllocation
    from ..models.report_features import ReportFeatures
    from ..models.report_metrics import ReportMetrics
    from ..models.segment_read import SegmentRead


T = TypeVar("T", bound="Report")


@_attrs_define
class Report:
    """Allocation, metrics and features of one iteration, in the units of the spec."""

    iteration: int
    """ Counts from 0; an execution may begin later. """
    allocation: ReportAllocation
    metrics: ReportMetrics
    features: ReportFeatures
    segments: list[SegmentRead] | Unset = UNSET
    """ Its parts, if the allocation changed before its end; the last one's is `allocation`. """
    change_seconds: float | Unset = 0.0
    """ Seconds of the change before it, as far as measured. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        iteration = self.iteration

        allocation = self.allocation.to_dict()

        metrics = self.metrics.to_dict()

        features = self.features.to_dict()

        segments: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.segments, Unset):
            segments = []
            for segments_item_data in self.segments:
                segments_item = segments_item_data.to_dict()
                segments.append(segments_item)

        change_seconds = self.change_seconds

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "iteration": iteration,
                "allocation": allocation,
                "metrics": metrics,
                "features": features,
            }
        )
        if segments is not UNSET:
            field_dict["segments"] = segments
        if change_seconds is not UNSET:
            field_dict["change_seconds"] = change_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.report_allocation import ReportAllocation  # noqa: PLC0415
        from ..models.report_features import ReportFeatures  # noqa: PLC0415
        from ..models.report_metrics import ReportMetrics  # noqa: PLC0415
        from ..models.segment_read import SegmentRead  # noqa: PLC0415

        d = dict(src_dict)
        iteration = d.pop("iteration")

        allocation = ReportAllocation.from_dict(d.pop("allocation"))

        metrics = ReportMetrics.from_dict(d.pop("metrics"))

        features = ReportFeatures.from_dict(d.pop("features"))

        _segments = d.pop("segments", UNSET)
        segments: list[SegmentRead] | Unset = UNSET
        if _segments is not UNSET:
            segments = []
            for segments_item_data in _segments:
                segments_item = SegmentRead.from_dict(segments_item_data)

                segments.append(segments_item)

        change_seconds = d.pop("change_seconds", UNSET)

        report = cls(
            iteration=iteration,
            allocation=allocation,
            metrics=metrics,
            features=features,
            segments=segments,
            change_seconds=change_seconds,
        )

        report.additional_properties = d
        return report

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
