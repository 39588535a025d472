from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.verdict_level_type_0 import VerdictLevelType0
from ..types import UNSET, Unset

T = TypeVar("T", bound="Verdict")


@_attrs_define
class Verdict:
    """Result of an evaluation for one agent: the highest level that it passed, and why it is not higher."""

    agent: int
    """ Version of the agent. """
    level: None | VerdictLevelType0
    """ Highest level that it passed; null: not even L0. """
    reason: str
    """ Why the level is not higher. """
    judge: int | Unset = 1
    """ Version of the judge that made it. """
    outdated: bool | Unset = False
    """ Whether the agent was outdated and not assessed. """
    current: bool | Unset = True
    """ Whether the judge is the current version; otherwise evaluate the agent again. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        agent = self.agent

        level: None | str
        if isinstance(self.level, VerdictLevelType0):
            level = self.level.value
        else:
            level = self.level

        reason = self.reason

        judge = self.judge

        outdated = self.outdated

        current = self.current

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "agent": agent,
                "level": level,
                "reason": reason,
            }
        )
        if judge is not UNSET:
            field_dict["judge"] = judge
        if outdated is not UNSET:
            field_dict["outdated"] = outdated
        if current is not UNSET:
            field_dict["current"] = current

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        agent = d.pop("agent")

        def _parse_level(data: object) -> None | VerdictLevelType0:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                level_type_0 = VerdictLevelType0(data)

                return level_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | VerdictLevelType0, data)

        level = _parse_level(d.pop("level"))

        reason = d.pop("reason")

        judge = d.pop("judge", UNSET)

        outdated = d.pop("outdated", UNSET)

        current = d.pop("current", UNSET)

        verdict = cls(
            agent=agent,
            level=level,
            reason=reason,
            judge=judge,
            outdated=outdated,
            current=current,
        )

        verdict.additional_properties = d
        return verdict

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
