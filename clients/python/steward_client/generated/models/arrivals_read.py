from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.arrivals_read_of_queues import ArrivalsReadOfQueues


T = TypeVar("T", bound="ArrivalsRead")


@_attrs_define
class ArrivalsRead:
    """Summary of a job log: numbers of jobs, times and durations in seconds, GPUs."""

    count: int
    of_queues: ArrivalsReadOfQueues
    """ Number of jobs by queue. """
    start: float
    """ Time of the first: seconds since 1970 UTC, or since the log's own origin. """
    span_seconds: float
    """ From first to last. """
    mean_gpus: float
    """ Mean number of GPUs requested. """
    mean_duration: float | None
    """ Null if no duration is known. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        of_queues = self.of_queues.to_dict()

        start = self.start

        span_seconds = self.span_seconds

        mean_gpus = self.mean_gpus

        mean_duration: float | None
        mean_duration = self.mean_duration

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "of_queues": of_queues,
                "start": start,
                "span_seconds": span_seconds,
                "mean_gpus": mean_gpus,
                "mean_duration": mean_duration,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.arrivals_read_of_queues import ArrivalsReadOfQueues  # noqa: PLC0415

        d = dict(src_dict)
        count = d.pop("count")

        of_queues = ArrivalsReadOfQueues.from_dict(d.pop("of_queues"))

        start = d.pop("start")

        span_seconds = d.pop("span_seconds")

        mean_gpus = d.pop("mean_gpus")

        def _parse_mean_duration(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        mean_duration = _parse_mean_duration(d.pop("mean_duration"))

        arrivals_read = cls(
            count=count,
            of_queues=of_queues,
            start=start,
            span_seconds=span_seconds,
            mean_gpus=mean_gpus,
            mean_duration=mean_duration,
        )

        arrivals_read.additional_properties = d
        return arrivals_read

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
