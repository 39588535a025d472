from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.gain_interval import GainInterval


T = TypeVar("T", bound="ShadowRead")


@_attrs_define
class ShadowRead:
    """Numbers of an agent's decisions in the runs that it shadowed, its agreement (0 to 1), and its gain in return."""

    workload: str
    agent: int
    runs: int
    decisions: int
    failures: int
    """ Decisions in which it failed. """
    agreement: float | None
    """ Share of its decisions that match those made. """
    gain: GainInterval | None
    """ Per run: expected return of its steps minus that of the steps taken, under the domain model. It is the
    regret of not following it; if negative, of following it. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.gain_interval import GainInterval  # noqa: PLC0415

        workload = self.workload

        agent = self.agent

        runs = self.runs

        decisions = self.decisions

        failures = self.failures

        agreement: float | None
        agreement = self.agreement

        gain: dict[str, Any] | None
        if isinstance(self.gain, GainInterval):
            gain = self.gain.to_dict()
        else:
            gain = self.gain

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "agent": agent,
                "runs": runs,
                "decisions": decisions,
                "failures": failures,
                "agreement": agreement,
                "gain": gain,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.gain_interval import GainInterval  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        agent = d.pop("agent")

        runs = d.pop("runs")

        decisions = d.pop("decisions")

        failures = d.pop("failures")

        def _parse_agreement(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        agreement = _parse_agreement(d.pop("agreement"))

        def _parse_gain(data: object) -> GainInterval | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                gain_type_0 = GainInterval.from_dict(data)

                return gain_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(GainInterval | None, data)

        gain = _parse_gain(d.pop("gain"))

        shadow_read = cls(
            workload=workload,
            agent=agent,
            runs=runs,
            decisions=decisions,
            failures=failures,
            agreement=agreement,
            gain=gain,
        )

        shadow_read.additional_properties = d
        return shadow_read

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
