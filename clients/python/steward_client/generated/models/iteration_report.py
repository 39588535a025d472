from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.iteration_report_allocation import IterationReportAllocation
    from ..models.iteration_report_features import IterationReportFeatures
    from ..models.iteration_report_metrics import IterationReportMetrics


T = TypeVar("T", bound="IterationReport")


@_attrs_define
class IterationReport:
    """What one iteration used and measured."""

    allocation: IterationReportAllocation
    metrics: IterationReportMetrics
    kind: Literal["iterative"] | Unset = "iterative"
    features: IterationReportFeatures | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        metrics = self.metrics.to_dict()

        kind = self.kind

        features: dict[str, Any] | Unset = UNSET
        if not isinstance(self.features, Unset):
            features = self.features.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "allocation": allocation,
                "metrics": metrics,
            }
        )
        if kind is not UNSET:
            field_dict["kind"] = kind
        if features is not UNSET:
            field_dict["features"] = features

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.iteration_report_allocation import IterationReportAllocation  # noqa: PLC0415
        from ..models.iteration_report_features import IterationReportFeatures  # noqa: PLC0415
        from ..models.iteration_report_metrics import IterationReportMetrics  # noqa: PLC0415

        d = dict(src_dict)
        allocation = IterationReportAllocation.from_dict(d.pop("allocation"))

        metrics = IterationReportMetrics.from_dict(d.pop("metrics"))

        kind = cast(Literal["iterative"] | Unset, d.pop("kind", UNSET))
        if kind != "iterative" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'iterative', got '{kind}'")

        _features = d.pop("features", UNSET)
        features: IterationReportFeatures | Unset
        if isinstance(_features, Unset):
            features = UNSET
        else:
            features = IterationReportFeatures.from_dict(_features)

        iteration_report = cls(
            allocation=allocation,
            metrics=metrics,
            kind=kind,
            features=features,
        )

        return iteration_report
