from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item_allocation import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation,
    )
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item_features import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures,
    )
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item_metrics import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics,
    )
    from ..models.upload_samples_json_body_type_2_samples_item_reports_item_segments_item import (
        UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType2SamplesItemReportsItem")


@_attrs_define
class UploadSamplesJsonBodyType2SamplesItemReportsItem:
    allocation: UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation
    metrics: UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics
    iteration: int | Unset = UNSET
    change_seconds: float | Unset = UNSET
    features: UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures | Unset = UNSET
    segments: list[UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        metrics = self.metrics.to_dict()

        iteration = self.iteration

        change_seconds = self.change_seconds

        features: dict[str, Any] | Unset = UNSET
        if not isinstance(self.features, Unset):
            features = self.features.to_dict()

        segments: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.segments, Unset):
            segments = []
            for segments_item_data in self.segments:
                segments_item = segments_item_data.to_dict()
                segments.append(segments_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allocation": allocation,
                "metrics": metrics,
            }
        )
        if iteration is not UNSET:
            field_dict["iteration"] = iteration
        if change_seconds is not UNSET:
            field_dict["change_seconds"] = change_seconds
        if features is not UNSET:
            field_dict["features"] = features
        if segments is not UNSET:
            field_dict["segments"] = segments

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item_allocation import (
            UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item_features import (
            UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item_metrics import (
            UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_2_samples_item_reports_item_segments_item import (
            UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem,  # noqa: PLC0415
        )

        d = dict(src_dict)
        allocation = UploadSamplesJsonBodyType2SamplesItemReportsItemAllocation.from_dict(d.pop("allocation"))

        metrics = UploadSamplesJsonBodyType2SamplesItemReportsItemMetrics.from_dict(d.pop("metrics"))

        iteration = d.pop("iteration", UNSET)

        change_seconds = d.pop("change_seconds", UNSET)

        _features = d.pop("features", UNSET)
        features: UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures | Unset
        if isinstance(_features, Unset):
            features = UNSET
        else:
            features = UploadSamplesJsonBodyType2SamplesItemReportsItemFeatures.from_dict(_features)

        _segments = d.pop("segments", UNSET)
        segments: list[UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem] | Unset = UNSET
        if _segments is not UNSET:
            segments = []
            for segments_item_data in _segments:
                segments_item = UploadSamplesJsonBodyType2SamplesItemReportsItemSegmentsItem.from_dict(
                    segments_item_data
                )

                segments.append(segments_item)

        upload_samples_json_body_type_2_samples_item_reports_item = cls(
            allocation=allocation,
            metrics=metrics,
            iteration=iteration,
            change_seconds=change_seconds,
            features=features,
            segments=segments,
        )

        upload_samples_json_body_type_2_samples_item_reports_item.additional_properties = d
        return upload_samples_json_body_type_2_samples_item_reports_item

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
