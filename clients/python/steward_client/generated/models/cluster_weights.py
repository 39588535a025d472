from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="ClusterWeights")


@_attrs_define
class ClusterWeights:
    """Relative weights, without unit, of the objective's terms; 0 disables a term."""

    completion: float | Unset = 1.0
    """ completion times relative to a dedicated cluster """
    occupied: float | Unset = 0.0
    """ GPU-hours """
    accuracy: float | Unset = 0.0
    """ gap between jobs' metrics and their final values, over time """
    fairness: float | Unset = 0.0
    """ Jain's index of the jobs' slowdowns, minus 1 """
    deadlines: float | Unset = 1.0
    """ missed targets of members; at 1, meeting one is worth as much as the speed of all jobs """
    changes: float | Unset = 0.01
    """ restarts """

    def to_dict(self) -> dict[str, Any]:
        completion = self.completion

        occupied = self.occupied

        accuracy = self.accuracy

        fairness = self.fairness

        deadlines = self.deadlines

        changes = self.changes

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if completion is not UNSET:
            field_dict["completion"] = completion
        if occupied is not UNSET:
            field_dict["occupied"] = occupied
        if accuracy is not UNSET:
            field_dict["accuracy"] = accuracy
        if fairness is not UNSET:
            field_dict["fairness"] = fairness
        if deadlines is not UNSET:
            field_dict["deadlines"] = deadlines
        if changes is not UNSET:
            field_dict["changes"] = changes

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        completion = d.pop("completion", UNSET)

        occupied = d.pop("occupied", UNSET)

        accuracy = d.pop("accuracy", UNSET)

        fairness = d.pop("fairness", UNSET)

        deadlines = d.pop("deadlines", UNSET)

        changes = d.pop("changes", UNSET)

        cluster_weights = cls(
            completion=completion,
            occupied=occupied,
            accuracy=accuracy,
            fairness=fairness,
            deadlines=deadlines,
            changes=changes,
        )

        return cluster_weights
