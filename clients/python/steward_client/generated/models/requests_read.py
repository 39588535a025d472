from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.requests_read_of_users import RequestsReadOfUsers


T = TypeVar("T", bound="RequestsRead")


@_attrs_define
class RequestsRead:
    """Summary of a request log."""

    count: int
    of_users: RequestsReadOfUsers
    """ Number of requests by user. """
    start: float
    """ Time of the first: seconds since 1970 UTC, or since the log's own origin. """
    span_seconds: float
    """ From first to last. """
    mean_size: float | None
    """ Null if sizes are unknown. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        count = self.count

        of_users = self.of_users.to_dict()

        start = self.start

        span_seconds = self.span_seconds

        mean_size: float | None
        mean_size = self.mean_size

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "count": count,
                "of_users": of_users,
                "start": start,
                "span_seconds": span_seconds,
                "mean_size": mean_size,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.requests_read_of_users import RequestsReadOfUsers  # noqa: PLC0415

        d = dict(src_dict)
        count = d.pop("count")

        of_users = RequestsReadOfUsers.from_dict(d.pop("of_users"))

        start = d.pop("start")

        span_seconds = d.pop("span_seconds")

        def _parse_mean_size(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        mean_size = _parse_mean_size(d.pop("mean_size"))

        requests_read = cls(
            count=count,
            of_users=of_users,
            start=start,
            span_seconds=span_seconds,
            mean_size=mean_size,
        )

        requests_read.additional_properties = d
        return requests_read

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
