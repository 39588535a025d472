from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.workload_patch_prices import WorkloadPatchPrices
    from ..models.workload_patch_targets import WorkloadPatchTargets
    from ..models.workload_patch_weights import WorkloadPatchWeights


T = TypeVar("T", bound="WorkloadPatch")


@_attrs_define
class WorkloadPatch:
    """What may change without a new training; what is left out stays as it is."""

    targets: WorkloadPatchTargets | Unset = UNSET
    """ New targets by metric; null: no target any more. """
    prices: WorkloadPatchPrices | Unset = UNSET
    """ New prices per unit and hour, by resource or type of node. """
    weights: WorkloadPatchWeights | Unset = UNSET
    """ New weights of the objective's terms, by name; 0 takes a term out, null is refused. """

    def to_dict(self) -> dict[str, Any]:
        targets: dict[str, Any] | Unset = UNSET
        if not isinstance(self.targets, Unset):
            targets = self.targets.to_dict()

        prices: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prices, Unset):
            prices = self.prices.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if targets is not UNSET:
            field_dict["targets"] = targets
        if prices is not UNSET:
            field_dict["prices"] = prices
        if weights is not UNSET:
            field_dict["weights"] = weights

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.workload_patch_prices import WorkloadPatchPrices  # noqa: PLC0415
        from ..models.workload_patch_targets import WorkloadPatchTargets  # noqa: PLC0415
        from ..models.workload_patch_weights import WorkloadPatchWeights  # noqa: PLC0415

        d = dict(src_dict)
        _targets = d.pop("targets", UNSET)
        targets: WorkloadPatchTargets | Unset
        if isinstance(_targets, Unset):
            targets = UNSET
        else:
            targets = WorkloadPatchTargets.from_dict(_targets)

        _prices = d.pop("prices", UNSET)
        prices: WorkloadPatchPrices | Unset
        if isinstance(_prices, Unset):
            prices = UNSET
        else:
            prices = WorkloadPatchPrices.from_dict(_prices)

        _weights = d.pop("weights", UNSET)
        weights: WorkloadPatchWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = WorkloadPatchWeights.from_dict(_weights)

        workload_patch = cls(
            targets=targets,
            prices=prices,
            weights=weights,
        )

        return workload_patch
