from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="ShadowRule")


@_attrs_define
class ShadowRule:
    """Decision of a shadow agent for comparison: recorded, not applied."""

    agent: int
    """ Version of the shadow. """
    rule: None | str
    """ Rule by which it would have assigned GPUs; null if it failed. """
    agrees: bool
    """ Whether every job would have had the same GPUs. """
    problem: None | str
    """ What failed, if anything. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent = self.agent

        rule: None | str
        rule = self.rule

        agrees = self.agrees

        problem: None | str
        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent": agent,
                "rule": rule,
                "agrees": agrees,
                "problem": problem,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        agent = d.pop("agent")

        def _parse_rule(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        rule = _parse_rule(d.pop("rule"))

        agrees = d.pop("agrees")

        def _parse_problem(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        problem = _parse_problem(d.pop("problem"))

        shadow_rule = cls(
            agent=agent,
            rule=rule,
            agrees=agrees,
            problem=problem,
        )

        shadow_rule.additional_properties = d
        return shadow_rule

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
