from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.cap_use_of import CapUseOf
from ..models.cap_use_scope import CapUseScope
from ..models.cap_use_state import CapUseState

T = TypeVar("T", bound="CapUse")


@_attrs_define
class CapUse:
    """A limit of a run (currency or seconds): what is used and left of it, and whether it is near or reached."""

    scope: CapUseScope
    """ Whose cap it is. Caps of workload and tenant are for all runs of a month (UTC). """
    of: CapUseOf
    limit: float
    spent: float
    """ Used so far, by all runs that it covers; with what the present iterations of other runs are expected to use.
    """
    left: float
    """ `limit` minus `spent`, at least 0. """
    projected: float | None
    """ `spent` at the end of this run, if the decision is followed and other runs stop now; null: unknown. """
    state: CapUseState
    """ `near`: at least 80 % is used, or this run is projected to pass it. `reached`: the next iteration would pass
    it, so the run is to stop. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        scope = self.scope.value

        of = self.of.value

        limit = self.limit

        spent = self.spent

        left = self.left

        projected: float | None
        projected = self.projected

        state = self.state.value

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "scope": scope,
                "of": of,
                "limit": limit,
                "spent": spent,
                "left": left,
                "projected": projected,
                "state": state,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        scope = CapUseScope(d.pop("scope"))

        of = CapUseOf(d.pop("of"))

        limit = d.pop("limit")

        spent = d.pop("spent")

        left = d.pop("left")

        def _parse_projected(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        projected = _parse_projected(d.pop("projected"))

        state = CapUseState(d.pop("state"))

        cap_use = cls(
            scope=scope,
            of=of,
            limit=limit,
            spent=spent,
            left=left,
            projected=projected,
            state=state,
        )

        cap_use.additional_properties = d
        return cap_use

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
