from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.iteration_segment_allocation import IterationSegmentAllocation


T = TypeVar("T", bound="IterationSegment")


@_attrs_define
class IterationSegment:
    """A part of an iteration at one allocation."""

    allocation: IterationSegmentAllocation
    """ Allocation of the segment, by resource. """
    seconds: float
    """ Duration, with the change at its beginning. """

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        seconds = self.seconds

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "allocation": allocation,
                "seconds": seconds,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.iteration_segment_allocation import IterationSegmentAllocation  # noqa: PLC0415

        d = dict(src_dict)
        allocation = IterationSegmentAllocation.from_dict(d.pop("allocation"))

        seconds = d.pop("seconds")

        iteration_segment = cls(
            allocation=allocation,
            seconds=seconds,
        )

        return iteration_segment
