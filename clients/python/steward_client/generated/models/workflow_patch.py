from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.workflow_patch_prices import WorkflowPatchPrices
    from ..models.workflow_patch_weights import WorkflowPatchWeights


T = TypeVar("T", bound="WorkflowPatch")


@_attrs_define
class WorkflowPatch:
    """Changes that apply at once; omitted fields stay as they are."""

    prices: WorkflowPatchPrices | Unset = UNSET
    """ New prices per node-hour, by type. """
    weights: WorkflowPatchWeights | Unset = UNSET
    """ New weights of the objective's terms; 0 disables a term. """

    def to_dict(self) -> dict[str, Any]:
        prices: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prices, Unset):
            prices = self.prices.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if prices is not UNSET:
            field_dict["prices"] = prices
        if weights is not UNSET:
            field_dict["weights"] = weights

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.workflow_patch_prices import WorkflowPatchPrices  # noqa: PLC0415
        from ..models.workflow_patch_weights import WorkflowPatchWeights  # noqa: PLC0415

        d = dict(src_dict)
        _prices = d.pop("prices", UNSET)
        prices: WorkflowPatchPrices | Unset
        if isinstance(_prices, Unset):
            prices = UNSET
        else:
            prices = WorkflowPatchPrices.from_dict(_prices)

        _weights = d.pop("weights", UNSET)
        weights: WorkflowPatchWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = WorkflowPatchWeights.from_dict(_weights)

        workflow_patch = cls(
            prices=prices,
            weights=weights,
        )

        return workflow_patch
