from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.drift_notice_direction import DriftNoticeDirection

T = TypeVar("T", bound="DriftNotice")


@_attrs_define
class DriftNotice:
    """A quantity that deviates from the domain model."""

    stream: str
    """ Name of the drifting quantity, as defined by the kind. """
    direction: DriftNoticeDirection
    factor: float
    """ Measurements since it began over the domain model's expectation. """
    iteration: int
    """ Report that revealed it. """
    since: int
    """ Approximate iteration at which it began. """
    at: datetime.datetime
    statistic: float
    """ Statistic of the sequential test, which has reached the threshold. """
    threshold: float
    """ Divided by the number of streams: minimum mean number of reports between false alarms. """
    model: int | None
    """ Version of the domain model it deviates from. """
    text: str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        stream = self.stream

        direction = self.direction.value

        factor = self.factor

        iteration = self.iteration

        since = self.since

        at = self.at.isoformat()

        statistic = self.statistic

        threshold = self.threshold

        model: int | None
        model = self.model

        text = self.text

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "stream": stream,
                "direction": direction,
                "factor": factor,
                "iteration": iteration,
                "since": since,
                "at": at,
                "statistic": statistic,
                "threshold": threshold,
                "model": model,
                "text": text,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        stream = d.pop("stream")

        direction = DriftNoticeDirection(d.pop("direction"))

        factor = d.pop("factor")

        iteration = d.pop("iteration")

        since = d.pop("since")

        at = datetime.datetime.fromisoformat(d.pop("at"))

        statistic = d.pop("statistic")

        threshold = d.pop("threshold")

        def _parse_model(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        model = _parse_model(d.pop("model"))

        text = d.pop("text")

        drift_notice = cls(
            stream=stream,
            direction=direction,
            factor=factor,
            iteration=iteration,
            since=since,
            at=at,
            statistic=statistic,
            threshold=threshold,
            model=model,
            text=text,
        )

        drift_notice.additional_properties = d
        return drift_notice

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
