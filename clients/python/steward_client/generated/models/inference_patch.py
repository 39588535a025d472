from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.inference_patch_prices import InferencePatchPrices
    from ..models.inference_patch_qualities import InferencePatchQualities
    from ..models.inference_patch_users import InferencePatchUsers
    from ..models.inference_patch_weights import InferencePatchWeights


T = TypeVar("T", bound="InferencePatch")


@_attrs_define
class InferencePatch:
    """Changes that apply at once; omitted fields stay as they are."""

    prices: InferencePatchPrices | Unset = UNSET
    """ New prices per server-hour, by class. """
    weights: InferencePatchWeights | Unset = UNSET
    """ New weights of the objective's terms; 0 disables a term. """
    qualities: InferencePatchQualities | Unset = UNSET
    """ New response qualities, by user. """
    users: InferencePatchUsers | Unset = UNSET
    """ New relative weights of users. """

    def to_dict(self) -> dict[str, Any]:
        prices: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prices, Unset):
            prices = self.prices.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        qualities: dict[str, Any] | Unset = UNSET
        if not isinstance(self.qualities, Unset):
            qualities = self.qualities.to_dict()

        users: dict[str, Any] | Unset = UNSET
        if not isinstance(self.users, Unset):
            users = self.users.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if prices is not UNSET:
            field_dict["prices"] = prices
        if weights is not UNSET:
            field_dict["weights"] = weights
        if qualities is not UNSET:
            field_dict["qualities"] = qualities
        if users is not UNSET:
            field_dict["users"] = users

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.inference_patch_prices import InferencePatchPrices  # noqa: PLC0415
        from ..models.inference_patch_qualities import InferencePatchQualities  # noqa: PLC0415
        from ..models.inference_patch_users import InferencePatchUsers  # noqa: PLC0415
        from ..models.inference_patch_weights import InferencePatchWeights  # noqa: PLC0415

        d = dict(src_dict)
        _prices = d.pop("prices", UNSET)
        prices: InferencePatchPrices | Unset
        if isinstance(_prices, Unset):
            prices = UNSET
        else:
            prices = InferencePatchPrices.from_dict(_prices)

        _weights = d.pop("weights", UNSET)
        weights: InferencePatchWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = InferencePatchWeights.from_dict(_weights)

        _qualities = d.pop("qualities", UNSET)
        qualities: InferencePatchQualities | Unset
        if isinstance(_qualities, Unset):
            qualities = UNSET
        else:
            qualities = InferencePatchQualities.from_dict(_qualities)

        _users = d.pop("users", UNSET)
        users: InferencePatchUsers | Unset
        if isinstance(_users, Unset):
            users = UNSET
        else:
            users = InferencePatchUsers.from_dict(_users)

        inference_patch = cls(
            prices=prices,
            weights=weights,
            qualities=qualities,
            users=users,
        )

        return inference_patch
