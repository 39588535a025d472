from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.shift import Shift


T = TypeVar("T", bound="FitRequest")


@_attrs_define
class FitRequest:
    """Options of a fit; all are optional."""

    seed: int | Unset = 0
    """ The same seed and samples give the same result. """
    drift: None | Shift | Unset = UNSET
    """ Rescale older executions to current conditions, as far as the kind supports it. """
    priority: int | Unset = 0
    """ A tenant's waiting jobs start in order of priority, highest first; the order among tenants ignores it. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.shift import Shift  # noqa: PLC0415

        seed = self.seed

        drift: dict[str, Any] | None | Unset
        if isinstance(self.drift, Unset):
            drift = UNSET
        elif isinstance(self.drift, Shift):
            drift = self.drift.to_dict()
        else:
            drift = self.drift

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if seed is not UNSET:
            field_dict["seed"] = seed
        if drift is not UNSET:
            field_dict["drift"] = drift
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.shift import Shift  # noqa: PLC0415

        d = dict(src_dict)
        seed = d.pop("seed", UNSET)

        def _parse_drift(data: object) -> None | Shift | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                drift_type_0 = Shift.from_dict(data)

                return drift_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Shift | Unset, data)

        drift = _parse_drift(d.pop("drift", UNSET))

        priority = d.pop("priority", UNSET)

        fit_request = cls(
            seed=seed,
            drift=drift,
            priority=priority,
        )

        return fit_request
