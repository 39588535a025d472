from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="InferenceWeights")


@_attrs_define
class InferenceWeights:
    """Relative weights of the objective's terms."""

    quality: float | Unset = 1.0
    """ weighted mean response quality, minus 1 """
    fairness: float | Unset = 0.0
    """ Jain's index of the users' mean qualities, minus 1 """
    cost: float | Unset = 0.1
    """ cost relative to running every server all the time """
    switching: float | Unset = 0.01
    """ changes of a server's variant or power, per request """

    def to_dict(self) -> dict[str, Any]:
        quality = self.quality

        fairness = self.fairness

        cost = self.cost

        switching = self.switching

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if quality is not UNSET:
            field_dict["quality"] = quality
        if fairness is not UNSET:
            field_dict["fairness"] = fairness
        if cost is not UNSET:
            field_dict["cost"] = cost
        if switching is not UNSET:
            field_dict["switching"] = switching

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        quality = d.pop("quality", UNSET)

        fairness = d.pop("fairness", UNSET)

        cost = d.pop("cost", UNSET)

        switching = d.pop("switching", UNSET)

        inference_weights = cls(
            quality=quality,
            fairness=fairness,
            cost=cost,
            switching=switching,
        )

        return inference_weights
