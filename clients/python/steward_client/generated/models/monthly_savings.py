from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.monthly_savings_mode import MonthlySavingsMode

if TYPE_CHECKING:
    from ..models.estimate import Estimate


T = TypeVar("T", bound="MonthlySavings")


@_attrs_define
class MonthlySavings:
    """Finished runs of one month and mode, summed; bounds are sums of bounds, as the runs share a model's errors."""

    month: str
    """ Month in which they ended, UTC. """
    mode: MonthlySavingsMode
    """ `advise`: recommendations were not applied. """
    runs: int
    """ Number of finished runs with savings. """
    met: int
    """ Number of them that met their targets. """
    cost: float
    """ Cost of the runs. """
    largest: Estimate | None
    """ Cost that they saved against the largest allocation, held throughout; null: of no run is it known. """
    largest_runs: int
    """ Number of runs that `largest` sums: those with measurements there. """
    best_fixed: Estimate | None
    """ Cost that they saved against the best allocation to hold; null: of no run is it known. """
    best_fixed_runs: int
    """ Number of runs that `best_fixed` sums. """
    advised: Estimate | None
    """ Cost of the recommendations, had they been applied, minus the runs' own: below 0 where they would have
    saved; null in mode `control`. """
    advised_runs: int
    """ Number of runs that `advised` sums: long ones are not replayed. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.estimate import Estimate  # noqa: PLC0415

        month = self.month

        mode = self.mode.value

        runs = self.runs

        met = self.met

        cost = self.cost

        largest: dict[str, Any] | None
        if isinstance(self.largest, Estimate):
            largest = self.largest.to_dict()
        else:
            largest = self.largest

        largest_runs = self.largest_runs

        best_fixed: dict[str, Any] | None
        if isinstance(self.best_fixed, Estimate):
            best_fixed = self.best_fixed.to_dict()
        else:
            best_fixed = self.best_fixed

        best_fixed_runs = self.best_fixed_runs

        advised: dict[str, Any] | None
        if isinstance(self.advised, Estimate):
            advised = self.advised.to_dict()
        else:
            advised = self.advised

        advised_runs = self.advised_runs

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "month": month,
                "mode": mode,
                "runs": runs,
                "met": met,
                "cost": cost,
                "largest": largest,
                "largest_runs": largest_runs,
                "best_fixed": best_fixed,
                "best_fixed_runs": best_fixed_runs,
                "advised": advised,
                "advised_runs": advised_runs,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.estimate import Estimate  # noqa: PLC0415

        d = dict(src_dict)
        month = d.pop("month")

        mode = MonthlySavingsMode(d.pop("mode"))

        runs = d.pop("runs")

        met = d.pop("met")

        cost = d.pop("cost")

        def _parse_largest(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                largest_type_0 = Estimate.from_dict(data)

                return largest_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        largest = _parse_largest(d.pop("largest"))

        largest_runs = d.pop("largest_runs")

        def _parse_best_fixed(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                best_fixed_type_0 = Estimate.from_dict(data)

                return best_fixed_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        best_fixed = _parse_best_fixed(d.pop("best_fixed"))

        best_fixed_runs = d.pop("best_fixed_runs")

        def _parse_advised(data: object) -> Estimate | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                advised_type_0 = Estimate.from_dict(data)

                return advised_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(Estimate | None, data)

        advised = _parse_advised(d.pop("advised"))

        advised_runs = d.pop("advised_runs")

        monthly_savings = cls(
            month=month,
            mode=mode,
            runs=runs,
            met=met,
            cost=cost,
            largest=largest,
            largest_runs=largest_runs,
            best_fixed=best_fixed,
            best_fixed_runs=best_fixed_runs,
            advised=advised,
            advised_runs=advised_runs,
        )

        monthly_savings.additional_properties = d
        return monthly_savings

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
