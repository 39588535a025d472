from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..models.requested_allocation_state import RequestedAllocationState
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.requested_allocation_allocation import RequestedAllocationAllocation


T = TypeVar("T", bound="RequestedAllocation")


@_attrs_define
class RequestedAllocation:
    """An allocation that was requested and is not there."""

    allocation: RequestedAllocationAllocation
    """ What was requested, by resource. """
    state: RequestedAllocationState
    """ `requested`: awaited; `refused`; `timed_out`: it was awaited for too long and withdrawn. """
    since: datetime.datetime
    """ When it was requested. """
    reason: str | Unset = ""
    """ Why it isn't there, as the place where the command runs names it: `Deferred` or `Infeasible` (Kubernetes),
    `Resources` or `QOSMaxGRESPerUser` (Slurm). """

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        state = self.state.value

        since = self.since.isoformat()

        reason = self.reason

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "allocation": allocation,
                "state": state,
                "since": since,
            }
        )
        if reason is not UNSET:
            field_dict["reason"] = reason

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.requested_allocation_allocation import (
            RequestedAllocationAllocation,  # noqa: PLC0415
        )

        d = dict(src_dict)
        allocation = RequestedAllocationAllocation.from_dict(d.pop("allocation"))

        state = RequestedAllocationState(d.pop("state"))

        since = datetime.datetime.fromisoformat(d.pop("since"))

        reason = d.pop("reason", UNSET)

        requested_allocation = cls(
            allocation=allocation,
            state=state,
            since=since,
            reason=reason,
        )

        return requested_allocation
