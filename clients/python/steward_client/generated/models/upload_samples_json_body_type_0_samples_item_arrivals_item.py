from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadSamplesJsonBodyType0SamplesItemArrivalsItem")


@_attrs_define
class UploadSamplesJsonBodyType0SamplesItemArrivalsItem:
    time: float | str
    """ Seconds since 1970 or another origin, or RFC 3339 in UTC. """
    gpus: int
    """ Number of GPUs requested. """
    queue: str | Unset = UNSET
    """ Default: the least urgent queue. """
    application: str | Unset = UNSET
    data: float | Unset = UNSET
    """ Data size, in one unit per application. """
    duration: float | Unset = UNSET
    """ Seconds that it ran on those GPUs. """
    samples: float | Unset = UNSET
    """ Samples that it trained on until it finished, each counted at the statistical efficiency of its initial
    batch. """
    wait: float | Unset = UNSET
    """ Seconds from its submission to its start; default: 0, where a duration is given. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        time: float | str
        time = self.time

        gpus = self.gpus

        queue = self.queue

        application = self.application

        data = self.data

        duration = self.duration

        samples = self.samples

        wait = self.wait

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "time": time,
                "gpus": gpus,
            }
        )
        if queue is not UNSET:
            field_dict["queue"] = queue
        if application is not UNSET:
            field_dict["application"] = application
        if data is not UNSET:
            field_dict["data"] = data
        if duration is not UNSET:
            field_dict["duration"] = duration
        if samples is not UNSET:
            field_dict["samples"] = samples
        if wait is not UNSET:
            field_dict["wait"] = wait

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_time(data: object) -> float | str:
            return cast(float | str, data)

        time = _parse_time(d.pop("time"))

        gpus = d.pop("gpus")

        queue = d.pop("queue", UNSET)

        application = d.pop("application", UNSET)

        data = d.pop("data", UNSET)

        duration = d.pop("duration", UNSET)

        samples = d.pop("samples", UNSET)

        wait = d.pop("wait", UNSET)

        upload_samples_json_body_type_0_samples_item_arrivals_item = cls(
            time=time,
            gpus=gpus,
            queue=queue,
            application=application,
            data=data,
            duration=duration,
            samples=samples,
            wait=wait,
        )

        upload_samples_json_body_type_0_samples_item_arrivals_item.additional_properties = d
        return upload_samples_json_body_type_0_samples_item_arrivals_item

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
