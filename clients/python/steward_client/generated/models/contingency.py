from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.contingency_allocation import ContingencyAllocation
    from ..models.decision_reason import DecisionReason


T = TypeVar("T", bound="Contingency")


@_attrs_define
class Contingency:
    """A change within the next iteration, in case that it takes longer than expected."""

    after_seconds: float
    """ Seconds since the iteration began, the change before it included, after which to change the allocation if
    the iteration isn't over. """
    allocation: ContingencyAllocation
    """ Allocation from then on, by resource. """
    reason: DecisionReason
    """ Reason as a stable code and as text. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        after_seconds = self.after_seconds

        allocation = self.allocation.to_dict()

        reason = self.reason.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "after_seconds": after_seconds,
                "allocation": allocation,
                "reason": reason,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.contingency_allocation import ContingencyAllocation  # noqa: PLC0415
        from ..models.decision_reason import DecisionReason  # noqa: PLC0415

        d = dict(src_dict)
        after_seconds = d.pop("after_seconds")

        allocation = ContingencyAllocation.from_dict(d.pop("allocation"))

        reason = DecisionReason.from_dict(d.pop("reason"))

        contingency = cls(
            after_seconds=after_seconds,
            allocation=allocation,
            reason=reason,
        )

        contingency.additional_properties = d
        return contingency

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
