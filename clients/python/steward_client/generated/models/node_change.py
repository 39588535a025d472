from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

T = TypeVar("T", bound="NodeChange")


@_attrs_define
class NodeChange:
    """Current number of GPUs of a node; 0: it is lost."""

    node: str
    """ Class and index, starting at 0. """
    gpus: int

    def to_dict(self) -> dict[str, Any]:
        node = self.node

        gpus = self.gpus

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "node": node,
                "gpus": gpus,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        node = d.pop("node")

        gpus = d.pop("gpus")

        node_change = cls(
            node=node,
            gpus=gpus,
        )

        return node_change
