from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.upload_samples_json_body_type_0_samples_item_arrivals_item import (
        UploadSamplesJsonBodyType0SamplesItemArrivalsItem,
    )
    from ..models.upload_samples_json_body_type_0_samples_item_curves_item import (
        UploadSamplesJsonBodyType0SamplesItemCurvesItem,
    )
    from ..models.upload_samples_json_body_type_0_samples_item_steps_item import (
        UploadSamplesJsonBodyType0SamplesItemStepsItem,
    )


T = TypeVar("T", bound="UploadSamplesJsonBodyType0SamplesItem")


@_attrs_define
class UploadSamplesJsonBodyType0SamplesItem:
    execution: str
    steps: list[UploadSamplesJsonBodyType0SamplesItemStepsItem] | Unset = UNSET
    curves: list[UploadSamplesJsonBodyType0SamplesItemCurvesItem] | Unset = UNSET
    arrivals: list[UploadSamplesJsonBodyType0SamplesItemArrivalsItem] | Unset = UNSET
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        execution = self.execution

        steps: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.steps, Unset):
            steps = []
            for steps_item_data in self.steps:
                steps_item = steps_item_data.to_dict()
                steps.append(steps_item)

        curves: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.curves, Unset):
            curves = []
            for curves_item_data in self.curves:
                curves_item = curves_item_data.to_dict()
                curves.append(curves_item)

        arrivals: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.arrivals, Unset):
            arrivals = []
            for arrivals_item_data in self.arrivals:
                arrivals_item = arrivals_item_data.to_dict()
                arrivals.append(arrivals_item)

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "execution": execution,
            }
        )
        if steps is not UNSET:
            field_dict["steps"] = steps
        if curves is not UNSET:
            field_dict["curves"] = curves
        if arrivals is not UNSET:
            field_dict["arrivals"] = arrivals

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upload_samples_json_body_type_0_samples_item_arrivals_item import (
            UploadSamplesJsonBodyType0SamplesItemArrivalsItem,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_0_samples_item_curves_item import (
            UploadSamplesJsonBodyType0SamplesItemCurvesItem,  # noqa: PLC0415
        )
        from ..models.upload_samples_json_body_type_0_samples_item_steps_item import (
            UploadSamplesJsonBodyType0SamplesItemStepsItem,  # noqa: PLC0415
        )

        d = dict(src_dict)
        execution = d.pop("execution")

        _steps = d.pop("steps", UNSET)
        steps: list[UploadSamplesJsonBodyType0SamplesItemStepsItem] | Unset = UNSET
        if _steps is not UNSET:
            steps = []
            for steps_item_data in _steps:
                steps_item = UploadSamplesJsonBodyType0SamplesItemStepsItem.from_dict(steps_item_data)

                steps.append(steps_item)

        _curves = d.pop("curves", UNSET)
        curves: list[UploadSamplesJsonBodyType0SamplesItemCurvesItem] | Unset = UNSET
        if _curves is not UNSET:
            curves = []
            for curves_item_data in _curves:
                curves_item = UploadSamplesJsonBodyType0SamplesItemCurvesItem.from_dict(curves_item_data)

                curves.append(curves_item)

        _arrivals = d.pop("arrivals", UNSET)
        arrivals: list[UploadSamplesJsonBodyType0SamplesItemArrivalsItem] | Unset = UNSET
        if _arrivals is not UNSET:
            arrivals = []
            for arrivals_item_data in _arrivals:
                arrivals_item = UploadSamplesJsonBodyType0SamplesItemArrivalsItem.from_dict(arrivals_item_data)

                arrivals.append(arrivals_item)

        upload_samples_json_body_type_0_samples_item = cls(
            execution=execution,
            steps=steps,
            curves=curves,
            arrivals=arrivals,
        )

        upload_samples_json_body_type_0_samples_item.additional_properties = d
        return upload_samples_json_body_type_0_samples_item

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
