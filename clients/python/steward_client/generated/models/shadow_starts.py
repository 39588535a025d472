from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.batch_start import BatchStart


T = TypeVar("T", bound="ShadowStarts")


@_attrs_define
class ShadowStarts:
    """The shadow's starts: recorded, not applied."""

    agent: int
    """ Version of the shadow. """
    start: list[BatchStart]
    agrees: bool
    """ Whether its decision would have been the same. """
    gain: float | None
    """ Always null: gains are not estimated for this kind. """
    problem: None | str
    """ What failed, if anything. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent = self.agent

        start = []
        for start_item_data in self.start:
            start_item = start_item_data.to_dict()
            start.append(start_item)

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
                "start": start,
                "agrees": agrees,
                "gain": gain,
                "problem": problem,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_start import BatchStart  # noqa: PLC0415

        d = dict(src_dict)
        agent = d.pop("agent")

        start = []
        _start = d.pop("start")
        for start_item_data in _start:
            start_item = BatchStart.from_dict(start_item_data)

            start.append(start_item)

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

        shadow_starts = cls(
            agent=agent,
            start=start,
            agrees=agrees,
            gain=gain,
            problem=problem,
        )

        shadow_starts.additional_properties = d
        return shadow_starts

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
