from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.promotion_listed_figures_type_0 import PromotionListedFiguresType0


T = TypeVar("T", bound="PromotionListed")


@_attrs_define
class PromotionListed:
    """A change of champion in a role; null versions stand for the heuristics."""

    role: str
    champion: int | None
    """ Version that serves from then on. """
    rollback_to: int | None
    """ Version that serves after a rollback. """
    reason: str
    made_by: str
    """ `request`, `training` or `drift`. """
    figures: None | PromotionListedFiguresType0
    """ Figures behind an automatic change. """
    created_at: datetime.datetime
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.promotion_listed_figures_type_0 import PromotionListedFiguresType0  # noqa: PLC0415

        role = self.role

        champion: int | None
        champion = self.champion

        rollback_to: int | None
        rollback_to = self.rollback_to

        reason = self.reason

        made_by = self.made_by

        figures: dict[str, Any] | None
        if isinstance(self.figures, PromotionListedFiguresType0):
            figures = self.figures.to_dict()
        else:
            figures = self.figures

        created_at = self.created_at.isoformat()

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "role": role,
                "champion": champion,
                "rollback_to": rollback_to,
                "reason": reason,
                "made_by": made_by,
                "figures": figures,
                "created_at": created_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.promotion_listed_figures_type_0 import PromotionListedFiguresType0  # noqa: PLC0415

        d = dict(src_dict)
        role = d.pop("role")

        def _parse_champion(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        champion = _parse_champion(d.pop("champion"))

        def _parse_rollback_to(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        rollback_to = _parse_rollback_to(d.pop("rollback_to"))

        reason = d.pop("reason")

        made_by = d.pop("made_by")

        def _parse_figures(data: object) -> None | PromotionListedFiguresType0:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                figures_type_0 = PromotionListedFiguresType0.from_dict(data)

                return figures_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | PromotionListedFiguresType0, data)

        figures = _parse_figures(d.pop("figures"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        promotion_listed = cls(
            role=role,
            champion=champion,
            rollback_to=rollback_to,
            reason=reason,
            made_by=made_by,
            figures=figures,
            created_at=created_at,
        )

        promotion_listed.additional_properties = d
        return promotion_listed

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
