from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.not_granted_state import NotGrantedState

if TYPE_CHECKING:
    from ..models.not_granted_allocation import NotGrantedAllocation
    from ..models.not_granted_requested import NotGrantedRequested


T = TypeVar("T", bound="NotGranted")


@_attrs_define
class NotGranted:
    """An allocation that was requested and is not there: this decision plans with what is."""

    allocation: NotGrantedAllocation
    """ What is there, by resource. """
    requested: NotGrantedRequested
    """ What was requested, by resource. """
    state: NotGrantedState
    """ `requested`: it is awaited, and projections are of what is there. """
    since: datetime.datetime
    """ When it was requested. """
    reason: str
    """ Why it isn't there, as reported; empty: unknown. """
    refusals: int
    """ How often it was refused so far. """
    next_request: int | None
    """ Iteration from which it may be requested again; null: it is awaited, or the run is over before. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        allocation = self.allocation.to_dict()

        requested = self.requested.to_dict()

        state = self.state.value

        since = self.since.isoformat()

        reason = self.reason

        refusals = self.refusals

        next_request: int | None
        next_request = self.next_request

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "allocation": allocation,
                "requested": requested,
                "state": state,
                "since": since,
                "reason": reason,
                "refusals": refusals,
                "next_request": next_request,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.not_granted_allocation import NotGrantedAllocation  # noqa: PLC0415
        from ..models.not_granted_requested import NotGrantedRequested  # noqa: PLC0415

        d = dict(src_dict)
        allocation = NotGrantedAllocation.from_dict(d.pop("allocation"))

        requested = NotGrantedRequested.from_dict(d.pop("requested"))

        state = NotGrantedState(d.pop("state"))

        since = datetime.datetime.fromisoformat(d.pop("since"))

        reason = d.pop("reason")

        refusals = d.pop("refusals")

        def _parse_next_request(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        next_request = _parse_next_request(d.pop("next_request"))

        not_granted = cls(
            allocation=allocation,
            requested=requested,
            state=state,
            since=since,
            reason=reason,
            refusals=refusals,
            next_request=next_request,
        )

        not_granted.additional_properties = d
        return not_granted

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
