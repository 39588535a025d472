from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.shadow_step_allocation_type_0 import ShadowStepAllocationType0


T = TypeVar("T", bound="ShadowStep")


@_attrs_define
class ShadowStep:
    """Decision of a shadow agent for comparison: recorded, not applied; its gain is in units of return."""

    agent: int
    """ Version of the shadow. """
    allocation: None | ShadowStepAllocationType0
    """ Allocation it would choose; null if it failed. """
    agrees: bool
    """ Whether its step equals the decided one. """
    gain: float | None
    """ Expected return of its step minus that of the decided one under the domain model, each allocation then held:
    the regret of not following it. """
    problem: None | str
    """ What failed, if anything. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.shadow_step_allocation_type_0 import ShadowStepAllocationType0  # noqa: PLC0415

        agent = self.agent

        allocation: dict[str, Any] | None
        if isinstance(self.allocation, ShadowStepAllocationType0):
            allocation = self.allocation.to_dict()
        else:
            allocation = self.allocation

        agrees = self.agrees

        gain: float | None
        gain = self.gain

        problem: None | str
        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent": agent,
                "allocation": allocation,
                "agrees": agrees,
                "gain": gain,
                "problem": problem,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shadow_step_allocation_type_0 import ShadowStepAllocationType0  # noqa: PLC0415

        d = dict(src_dict)
        agent = d.pop("agent")

        def _parse_allocation(data: object) -> None | ShadowStepAllocationType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                allocation_type_0 = ShadowStepAllocationType0.from_dict(data)

                return allocation_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | ShadowStepAllocationType0, data)

        allocation = _parse_allocation(d.pop("allocation"))

        agrees = d.pop("agrees")

        def _parse_gain(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        gain = _parse_gain(d.pop("gain"))

        def _parse_problem(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        problem = _parse_problem(d.pop("problem"))

        shadow_step = cls(
            agent=agent,
            allocation=allocation,
            agrees=agrees,
            gain=gain,
            problem=problem,
        )

        shadow_step.additional_properties = d
        return shadow_step

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
