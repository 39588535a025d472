from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadSamplesJsonBodyType0SamplesItemCurvesItem")


@_attrs_define
class UploadSamplesJsonBodyType0SamplesItemCurvesItem:
    """Requires `loss` or `metric`."""

    job: str
    iteration: float
    """ Epochs or updates completed, in the application's own unit. """
    application: str | Unset = UNSET
    """ Jobs of one application are expected to learn alike. """
    loss: float | Unset = UNSET
    """ Lower is better. """
    metric: float | Unset = UNSET
    """ Higher is better. """
    batch: float | Unset = UNSET
    """ Samples per update, over all GPUs. """
    noise_scale: float | Unset = UNSET
    """ Gradient noise scale, in samples: variance over squared gradient. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        iteration = self.iteration

        application = self.application

        loss = self.loss

        metric = self.metric

        batch = self.batch

        noise_scale = self.noise_scale

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job": job,
                "iteration": iteration,
            }
        )
        if application is not UNSET:
            field_dict["application"] = application
        if loss is not UNSET:
            field_dict["loss"] = loss
        if metric is not UNSET:
            field_dict["metric"] = metric
        if batch is not UNSET:
            field_dict["batch"] = batch
        if noise_scale is not UNSET:
            field_dict["noise_scale"] = noise_scale

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        iteration = d.pop("iteration")

        application = d.pop("application", UNSET)

        loss = d.pop("loss", UNSET)

        metric = d.pop("metric", UNSET)

        batch = d.pop("batch", UNSET)

        noise_scale = d.pop("noise_scale", UNSET)

        upload_samples_json_body_type_0_samples_item_curves_item = cls(
            job=job,
            iteration=iteration,
            application=application,
            loss=loss,
            metric=metric,
            batch=batch,
            noise_scale=noise_scale,
        )

        upload_samples_json_body_type_0_samples_item_curves_item.additional_properties = d
        return upload_samples_json_body_type_0_samples_item_curves_item

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
