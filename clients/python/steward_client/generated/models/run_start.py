from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.run_start_mode import RunStartMode
from ..types import UNSET, Unset

T = TypeVar("T", bound="RunStart")


@_attrs_define
class RunStart:
    """Parameters of a new run that all kinds have; kinds add their own."""

    workload: str
    """ Name of the workload. """
    shadow: int | None | Unset = UNSET
    """ Version of an agent to consult as a shadow: its steps are recorded with each decision, without effect. """
    policy: None | str | Unset = UNSET
    """ Name of a rule that decides from the first report on, in place of the promoted agent or the default rule,
    for comparison; null: those. Not together with `shadow`. """
    mode: RunStartMode | Unset = RunStartMode.CONTROL
    """ `advise`: decisions are recommendations that are not applied, and reports have the actual allocation. The
    `savings` of the finished run say what they would have saved, and whether they would have met its targets. """
    token: bool | Unset = False
    """ Whether to create a token that can only report to, end and read this run; for a job that should not hold a
    key. """

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        shadow: int | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        else:
            shadow = self.shadow

        policy: None | str | Unset
        if isinstance(self.policy, Unset):
            policy = UNSET
        else:
            policy = self.policy

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

        token = self.token

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
            }
        )
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if policy is not UNSET:
            field_dict["policy"] = policy
        if mode is not UNSET:
            field_dict["mode"] = mode
        if token is not UNSET:
            field_dict["token"] = token

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        workload = d.pop("workload")

        def _parse_shadow(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        def _parse_policy(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        policy = _parse_policy(d.pop("policy", UNSET))

        _mode = d.pop("mode", UNSET)
        mode: RunStartMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = RunStartMode(_mode)

        token = d.pop("token", UNSET)

        run_start = cls(
            workload=workload,
            shadow=shadow,
            policy=policy,
            mode=mode,
            token=token,
        )

        return run_start
