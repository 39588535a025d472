from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.cluster_patch_prices import ClusterPatchPrices
    from ..models.cluster_patch_queues import ClusterPatchQueues
    from ..models.cluster_patch_weights import ClusterPatchWeights


T = TypeVar("T", bound="ClusterPatch")


@_attrs_define
class ClusterPatch:
    """Changes that apply at once; omitted fields stay as they are.

    Capacity is not part of it: runs report their nodes.

    """

    prices: ClusterPatchPrices | Unset = UNSET
    """ New prices per GPU-hour, by node class. """
    weights: ClusterPatchWeights | Unset = UNSET
    """ New weights of the objective's terms; 0 disables a term. """
    queues: ClusterPatchQueues | Unset = UNSET
    """ New weights and ageing times, by queue. """
    members: list[str] | None | Unset = UNSET
    """ New list of all members; null: unchanged. """

    def to_dict(self) -> dict[str, Any]:
        prices: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prices, Unset):
            prices = self.prices.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        queues: dict[str, Any] | Unset = UNSET
        if not isinstance(self.queues, Unset):
            queues = self.queues.to_dict()

        members: list[str] | None | Unset
        if isinstance(self.members, Unset):
            members = UNSET
        elif isinstance(self.members, list):
            members = self.members

        else:
            members = self.members

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if prices is not UNSET:
            field_dict["prices"] = prices
        if weights is not UNSET:
            field_dict["weights"] = weights
        if queues is not UNSET:
            field_dict["queues"] = queues
        if members is not UNSET:
            field_dict["members"] = members

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.cluster_patch_prices import ClusterPatchPrices  # noqa: PLC0415
        from ..models.cluster_patch_queues import ClusterPatchQueues  # noqa: PLC0415
        from ..models.cluster_patch_weights import ClusterPatchWeights  # noqa: PLC0415

        d = dict(src_dict)
        _prices = d.pop("prices", UNSET)
        prices: ClusterPatchPrices | Unset
        if isinstance(_prices, Unset):
            prices = UNSET
        else:
            prices = ClusterPatchPrices.from_dict(_prices)

        _weights = d.pop("weights", UNSET)
        weights: ClusterPatchWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = ClusterPatchWeights.from_dict(_weights)

        _queues = d.pop("queues", UNSET)
        queues: ClusterPatchQueues | Unset
        if isinstance(_queues, Unset):
            queues = UNSET
        else:
            queues = ClusterPatchQueues.from_dict(_queues)

        def _parse_members(data: object) -> list[str] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                members_type_0 = cast(list[str], data)

                return members_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[str] | None | Unset, data)

        members = _parse_members(d.pop("members", UNSET))

        cluster_patch = cls(
            prices=prices,
            weights=weights,
            queues=queues,
            members=members,
        )

        return cluster_patch
