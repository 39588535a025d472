from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.left_prediction import LeftPrediction
    from ..models.step_prediction import StepPrediction


T = TypeVar("T", bound="ClusterPrediction")


@_attrs_define
class ClusterPrediction:
    """Predictions for an application: one training step, and the remaining gain of a job."""

    workload: str
    model: int
    """ Version of the model used. """
    application: str
    step: None | StepPrediction | Unset = UNSET
    """ Null without `gpus` and `batch`. """
    left: LeftPrediction | None | Unset = UNSET
    """ Null without a learning curve. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.left_prediction import LeftPrediction  # noqa: PLC0415
        from ..models.step_prediction import StepPrediction  # noqa: PLC0415

        workload = self.workload

        model = self.model

        application = self.application

        step: dict[str, Any] | None | Unset
        if isinstance(self.step, Unset):
            step = UNSET
        elif isinstance(self.step, StepPrediction):
            step = self.step.to_dict()
        else:
            step = self.step

        left: dict[str, Any] | None | Unset
        if isinstance(self.left, Unset):
            left = UNSET
        elif isinstance(self.left, LeftPrediction):
            left = self.left.to_dict()
        else:
            left = self.left

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "model": model,
                "application": application,
            }
        )
        if step is not UNSET:
            field_dict["step"] = step
        if left is not UNSET:
            field_dict["left"] = left

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.left_prediction import LeftPrediction  # noqa: PLC0415
        from ..models.step_prediction import StepPrediction  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        model = d.pop("model")

        application = d.pop("application")

        def _parse_step(data: object) -> None | StepPrediction | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                step_type_0 = StepPrediction.from_dict(data)

                return step_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StepPrediction | Unset, data)

        step = _parse_step(d.pop("step", UNSET))

        def _parse_left(data: object) -> LeftPrediction | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                left_type_0 = LeftPrediction.from_dict(data)

                return left_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(LeftPrediction | None | Unset, data)

        left = _parse_left(d.pop("left", UNSET))

        cluster_prediction = cls(
            workload=workload,
            model=model,
            application=application,
            step=step,
            left=left,
        )

        cluster_prediction.additional_properties = d
        return cluster_prediction

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
