from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.drift_step_state import DriftStepState

if TYPE_CHECKING:
    from ..models.drift_step_figures import DriftStepFigures


T = TypeVar("T", bound="DriftStep")


@_attrs_define
class DriftStep:
    """One step of an adaptation: its time, the state that it leads to, the reason and figures."""

    at: datetime.datetime
    state: DriftStepState
    """ State that this step leads to. """
    why: str
    figures: DriftStepFigures
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        at = self.at.isoformat()

        state = self.state.value

        why = self.why

        figures = self.figures.to_dict()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "at": at,
                "state": state,
                "why": why,
                "figures": figures,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.drift_step_figures import DriftStepFigures  # noqa: PLC0415

        d = dict(src_dict)
        at = datetime.datetime.fromisoformat(d.pop("at"))

        state = DriftStepState(d.pop("state"))

        why = d.pop("why")

        figures = DriftStepFigures.from_dict(d.pop("figures"))

        drift_step = cls(
            at=at,
            state=state,
            why=why,
            figures=figures,
        )

        drift_step.additional_properties = d
        return drift_step

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
