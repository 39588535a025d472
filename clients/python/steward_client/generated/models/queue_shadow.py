from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.placement import Placement


T = TypeVar("T", bound="QueueShadow")


@_attrs_define
class QueueShadow:
    """The shadow's decision: recorded, not applied."""

    agent: int
    strategy: None | str
    placements: list[Placement]
    agrees: bool
    """ Whether the same tasks start on the same nodes. """
    gain: float | None
    """ Always null: gains are not estimated for this kind. """
    problem: None | str
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent = self.agent

        strategy: None | str
        strategy = self.strategy

        placements = []
        for placements_item_data in self.placements:
            placements_item = placements_item_data.to_dict()
            placements.append(placements_item)

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
                "strategy": strategy,
                "placements": placements,
                "agrees": agrees,
                "gain": gain,
                "problem": problem,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.placement import Placement  # noqa: PLC0415

        d = dict(src_dict)
        agent = d.pop("agent")

        def _parse_strategy(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        strategy = _parse_strategy(d.pop("strategy"))

        placements = []
        _placements = d.pop("placements")
        for placements_item_data in _placements:
            placements_item = Placement.from_dict(placements_item_data)

            placements.append(placements_item)

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

        queue_shadow = cls(
            agent=agent,
            strategy=strategy,
            placements=placements,
            agrees=agrees,
            gain=gain,
            problem=problem,
        )

        queue_shadow.additional_properties = d
        return queue_shadow

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
