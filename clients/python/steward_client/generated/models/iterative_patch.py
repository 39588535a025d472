from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.caps import Caps
    from ..models.iterative_patch_prices import IterativePatchPrices
    from ..models.iterative_patch_probabilities import IterativePatchProbabilities
    from ..models.iterative_patch_targets import IterativePatchTargets
    from ..models.iterative_patch_weights import IterativePatchWeights


T = TypeVar("T", bound="IterativePatch")


@_attrs_define
class IterativePatch:
    """Changes that apply at once; omitted fields stay as they are."""

    targets: IterativePatchTargets | Unset = UNSET
    """ New targets by metric; null removes a target. """
    probabilities: IterativePatchProbabilities | Unset = UNSET
    """ Required probabilities of meeting targets, by metric; null: the weights decide. Removing a target removes
    its probability. """
    prices: IterativePatchPrices | Unset = UNSET
    """ New prices per unit-hour, by resource. """
    weights: IterativePatchWeights | Unset = UNSET
    """ New weights of the objective's terms; 0 disables a term. """
    caps: Caps | None | Unset = UNSET
    """ New limits for all runs of a month, in place of the former ones; null: none. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.caps import Caps  # noqa: PLC0415

        targets: dict[str, Any] | Unset = UNSET
        if not isinstance(self.targets, Unset):
            targets = self.targets.to_dict()

        probabilities: dict[str, Any] | Unset = UNSET
        if not isinstance(self.probabilities, Unset):
            probabilities = self.probabilities.to_dict()

        prices: dict[str, Any] | Unset = UNSET
        if not isinstance(self.prices, Unset):
            prices = self.prices.to_dict()

        weights: dict[str, Any] | Unset = UNSET
        if not isinstance(self.weights, Unset):
            weights = self.weights.to_dict()

        caps: dict[str, Any] | None | Unset
        if isinstance(self.caps, Unset):
            caps = UNSET
        elif isinstance(self.caps, Caps):
            caps = self.caps.to_dict()
        else:
            caps = self.caps

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if targets is not UNSET:
            field_dict["targets"] = targets
        if probabilities is not UNSET:
            field_dict["probabilities"] = probabilities
        if prices is not UNSET:
            field_dict["prices"] = prices
        if weights is not UNSET:
            field_dict["weights"] = weights
        if caps is not UNSET:
            field_dict["caps"] = caps

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.iterative_patch_prices import IterativePatchPrices  # noqa: PLC0415
        from ..models.iterative_patch_probabilities import IterativePatchProbabilities  # noqa: PLC0415
        from ..models.iterative_patch_targets import IterativePatchTargets  # noqa: PLC0415
        from ..models.iterative_patch_weights import IterativePatchWeights  # noqa: PLC0415

        d = dict(src_dict)
        _targets = d.pop("targets", UNSET)
        targets: IterativePatchTargets | Unset
        if isinstance(_targets, Unset):
            targets = UNSET
        else:
            targets = IterativePatchTargets.from_dict(_targets)

        _probabilities = d.pop("probabilities", UNSET)
        probabilities: IterativePatchProbabilities | Unset
        if isinstance(_probabilities, Unset):
            probabilities = UNSET
        else:
            probabilities = IterativePatchProbabilities.from_dict(_probabilities)

        _prices = d.pop("prices", UNSET)
        prices: IterativePatchPrices | Unset
        if isinstance(_prices, Unset):
            prices = UNSET
        else:
            prices = IterativePatchPrices.from_dict(_prices)

        _weights = d.pop("weights", UNSET)
        weights: IterativePatchWeights | Unset
        if isinstance(_weights, Unset):
            weights = UNSET
        else:
            weights = IterativePatchWeights.from_dict(_weights)

        def _parse_caps(data: object) -> Caps | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                caps_type_0 = Caps.from_dict(data)

                return caps_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Caps | None | Unset, data)

        caps = _parse_caps(d.pop("caps", UNSET))

        iterative_patch = cls(
            targets=targets,
            probabilities=probabilities,
            prices=prices,
            weights=weights,
            caps=caps,
        )

        return iterative_patch
