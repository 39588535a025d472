from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

T = TypeVar("T", bound="UploadSamplesJsonBodyType0SamplesItemStepsItem")


@_attrs_define
class UploadSamplesJsonBodyType0SamplesItemStepsItem:
    application: str
    gpus: int
    batch: float
    """ Samples per step, over all GPUs. """
    seconds: float
    """ Duration of a step. """
    nodes: int | Unset = UNSET
    """ Number of nodes the GPUs are spread over; default: as few as they fill. """
    node_class: str | Unset = UNSET
    """ Node class of the spec; optional if there is only one. """
    beside: list[str] | Unset = UNSET
    """ Applications of jobs that shared its nodes; empty: none. """
    computing: float | Unset = UNSET
    """ Part of the step spent computing gradients. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        application = self.application

        gpus = self.gpus

        batch = self.batch

        seconds = self.seconds

        nodes = self.nodes

        node_class = self.node_class

        beside: list[str] | Unset = UNSET
        if not isinstance(self.beside, Unset):
            beside = self.beside

        computing = self.computing

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "application": application,
                "gpus": gpus,
                "batch": batch,
                "seconds": seconds,
            }
        )
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if node_class is not UNSET:
            field_dict["node_class"] = node_class
        if beside is not UNSET:
            field_dict["beside"] = beside
        if computing is not UNSET:
            field_dict["computing"] = computing

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        application = d.pop("application")

        gpus = d.pop("gpus")

        batch = d.pop("batch")

        seconds = d.pop("seconds")

        nodes = d.pop("nodes", UNSET)

        node_class = d.pop("node_class", UNSET)

        beside = cast(list[str], d.pop("beside", UNSET))

        computing = d.pop("computing", UNSET)

        upload_samples_json_body_type_0_samples_item_steps_item = cls(
            application=application,
            gpus=gpus,
            batch=batch,
            seconds=seconds,
            nodes=nodes,
            node_class=node_class,
            beside=beside,
            computing=computing,
        )

        upload_samples_json_body_type_0_samples_item_steps_item.additional_properties = d
        return upload_samples_json_body_type_0_samples_item_steps_item

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
