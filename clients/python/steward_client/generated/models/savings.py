from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.comparison import Comparison


T = TypeVar("T", bound="Savings")


@_attrs_define
class Savings:
    """Seconds and cost (prices' currency) of a run's reported iterations, beside those of other allocations."""

    iterations: int
    """ Number of reported iterations that are compared. """
    seconds: float
    """ Seconds that they took. """
    cost: float
    """ What they cost: hours times the prices per unit when the run finished. """
    level: float
    """ Share of the models within `low` to `high`. """
    largest: Comparison
    """ The reported iterations, had they run at other allocations; without figures where the model extrapolates.
    """
    best_fixed: Comparison
    """ The reported iterations, had they run at other allocations; without figures where the model extrapolates.
    """
    advised: Comparison | None | Unset = UNSET
    """ Recommendations, applied throughout, of runs to which nothing was applied (mode `advise`): by the model and
    the policy when the run finished. Its `saved` is below 0 where they would have saved. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.comparison import Comparison  # noqa: PLC0415

        iterations = self.iterations

        seconds = self.seconds

        cost = self.cost

        level = self.level

        largest = self.largest.to_dict()

        best_fixed = self.best_fixed.to_dict()

        advised: dict[str, Any] | None | Unset
        if isinstance(self.advised, Unset):
            advised = UNSET
        elif isinstance(self.advised, Comparison):
            advised = self.advised.to_dict()
        else:
            advised = self.advised

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "iterations": iterations,
                "seconds": seconds,
                "cost": cost,
                "level": level,
                "largest": largest,
                "best_fixed": best_fixed,
            }
        )
        if advised is not UNSET:
            field_dict["advised"] = advised

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.comparison import Comparison  # noqa: PLC0415

        d = dict(src_dict)
        iterations = d.pop("iterations")

        seconds = d.pop("seconds")

        cost = d.pop("cost")

        level = d.pop("level")

        largest = Comparison.from_dict(d.pop("largest"))

        best_fixed = Comparison.from_dict(d.pop("best_fixed"))

        def _parse_advised(data: object) -> Comparison | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                advised_type_0 = Comparison.from_dict(data)

                return advised_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Comparison | None | Unset, data)

        advised = _parse_advised(d.pop("advised", UNSET))

        savings = cls(
            iterations=iterations,
            seconds=seconds,
            cost=cost,
            level=level,
            largest=largest,
            best_fixed=best_fixed,
            advised=advised,
        )

        savings.additional_properties = d
        return savings

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
