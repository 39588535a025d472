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
    from ..models.iteration_segment import IterationSegment
    from ..models.requested_allocation import RequestedAllocation
    from ..models.upcoming_iteration import UpcomingIteration


T = TypeVar("T", bound="IterationReport")


@_attrs_define
class IterationReport:
    """Allocation and measurements of one iteration."""

    allocation: IterationReportAllocation
    metrics: IterationReportMetrics
    features: IterationReportFeatures | Unset = UNSET
    upcoming: list[UpcomingIteration] | None | Unset = UNSET
    """ The iterations right after this one, in order, as far as known: at most the remaining ones. Replaces earlier
    announcements; an empty list withdraws them; if omitted, they stay. """
    segments: list[IterationSegment] | None | Unset = UNSET
    """ The parts of an iteration whose allocation changed before its end, in order; the last one's is `allocation`,
    and their seconds add up to `iteration_seconds`. Omitted: it ran at `allocation`. """
    change_seconds: float | None | Unset = UNSET
    """ Seconds of `iteration_seconds` in which the run stood still, or repeated what was lost, as its allocation
    was changed or it was started again: measured. Omitted: as many as the model expects. """
    requested: None | RequestedAllocation | Unset = UNSET
    """ What was requested, if it isn't `allocation`, which is what is there. Omitted: nothing else was, or it is
    there. """
    kind: Literal["iterative"] | Unset = "iterative"

    def to_dict(self) -> dict[str, Any]:
        from ..models.requested_allocation import RequestedAllocation  # noqa: PLC0415

        allocation = self.allocation.to_dict()

        metrics = self.metrics.to_dict()

        features: dict[str, Any] | Unset = UNSET
        if not isinstance(self.features, Unset):
            features = self.features.to_dict()

        upcoming: list[dict[str, Any]] | None | Unset
        if isinstance(self.upcoming, Unset):
            upcoming = UNSET
        elif isinstance(self.upcoming, list):
            upcoming = []
            for upcoming_type_0_item_data in self.upcoming:
                upcoming_type_0_item = upcoming_type_0_item_data.to_dict()
                upcoming.append(upcoming_type_0_item)

        else:
            upcoming = self.upcoming

        segments: list[dict[str, Any]] | None | Unset
        if isinstance(self.segments, Unset):
            segments = UNSET
        elif isinstance(self.segments, list):
            segments = []
            for segments_type_0_item_data in self.segments:
                segments_type_0_item = segments_type_0_item_data.to_dict()
                segments.append(segments_type_0_item)

        else:
            segments = self.segments

        change_seconds: float | None | Unset
        if isinstance(self.change_seconds, Unset):
            change_seconds = UNSET
        else:
            change_seconds = self.change_seconds

        requested: dict[str, Any] | None | Unset
        if isinstance(self.requested, Unset):
            requested = UNSET
        elif isinstance(self.requested, RequestedAllocation):
            requested = self.requested.to_dict()
        else:
            requested = self.requested

        kind = self.kind

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "allocation": allocation,
                "metrics": metrics,
            }
        )
        if features is not UNSET:
            field_dict["features"] = features
        if upcoming is not UNSET:
            field_dict["upcoming"] = upcoming
        if segments is not UNSET:
            field_dict["segments"] = segments
        if change_seconds is not UNSET:
            field_dict["change_seconds"] = change_seconds
        if requested is not UNSET:
            field_dict["requested"] = requested
        if kind is not UNSET:
            field_dict["kind"] = kind

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.iteration_report_allocation import IterationReportAllocation  # noqa: PLC0415
        from ..models.iteration_report_features import IterationReportFeatures  # noqa: PLC0415
        from ..models.iteration_report_metrics import IterationReportMetrics  # noqa: PLC0415
        from ..models.iteration_segment import IterationSegment  # noqa: PLC0415
        from ..models.requested_allocation import RequestedAllocation  # noqa: PLC0415
        from ..models.upcoming_iteration import UpcomingIteration  # noqa: PLC0415

        d = dict(src_dict)
        allocation = IterationReportAllocation.from_dict(d.pop("allocation"))

        metrics = IterationReportMetrics.from_dict(d.pop("metrics"))

        _features = d.pop("features", UNSET)
        features: IterationReportFeatures | Unset
        if isinstance(_features, Unset):
            features = UNSET
        else:
            features = IterationReportFeatures.from_dict(_features)

        def _parse_upcoming(data: object) -> list[UpcomingIteration] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                upcoming_type_0 = []
                _upcoming_type_0 = data
                for upcoming_type_0_item_data in _upcoming_type_0:
                    upcoming_type_0_item = UpcomingIteration.from_dict(upcoming_type_0_item_data)

                    upcoming_type_0.append(upcoming_type_0_item)

                return upcoming_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[UpcomingIteration] | None | Unset, data)

        upcoming = _parse_upcoming(d.pop("upcoming", UNSET))

        def _parse_segments(data: object) -> list[IterationSegment] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                segments_type_0 = []
                _segments_type_0 = data
                for segments_type_0_item_data in _segments_type_0:
                    segments_type_0_item = IterationSegment.from_dict(segments_type_0_item_data)

                    segments_type_0.append(segments_type_0_item)

                return segments_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[IterationSegment] | None | Unset, data)

        segments = _parse_segments(d.pop("segments", UNSET))

        def _parse_change_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        change_seconds = _parse_change_seconds(d.pop("change_seconds", UNSET))

        def _parse_requested(data: object) -> None | RequestedAllocation | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                requested_type_0 = RequestedAllocation.from_dict(data)

                return requested_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RequestedAllocation | Unset, data)

        requested = _parse_requested(d.pop("requested", UNSET))

        kind = cast(Literal["iterative"] | Unset, d.pop("kind", UNSET))
        if kind != "iterative" and not isinstance(kind, Unset):
            raise ValueError(f"kind must match const 'iterative', got '{kind}'")

        iteration_report = cls(
            allocation=allocation,
            metrics=metrics,
            features=features,
            upcoming=upcoming,
            segments=segments,
            change_seconds=change_seconds,
            requested=requested,
            kind=kind,
        )

        return iteration_report
