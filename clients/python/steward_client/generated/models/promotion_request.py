from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..models.promotion_request_require_item import PromotionRequestRequireItem
from ..types import UNSET, Unset

T = TypeVar("T", bound="PromotionRequest")


@_attrs_define
class PromotionRequest:
    """Why a role's champion is changed, and which evidence the change requires."""

    reason: str | Unset = ""
    """ Reason to record. """
    require: list[PromotionRequestRequireItem] | Unset = UNSET
    """ Evidence required for a promotion: `shadow`, runs it shadowed without a loss under the domain model;
    `off_policy`, an evaluation that scored it on logged runs without a loss. """
    role: str | Unset = "default"
    """ Role of the policy, if the workload has several. """

    def to_dict(self) -> dict[str, Any]:
        reason = self.reason

        require: list[str] | Unset = UNSET
        if not isinstance(self.require, Unset):
            require = []
            for require_item_data in self.require:
                require_item = require_item_data.value
                require.append(require_item)

        role = self.role

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if reason is not UNSET:
            field_dict["reason"] = reason
        if require is not UNSET:
            field_dict["require"] = require
        if role is not UNSET:
            field_dict["role"] = role

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        reason = d.pop("reason", UNSET)

        _require = d.pop("require", UNSET)
        require: list[PromotionRequestRequireItem] | Unset = UNSET
        if _require is not UNSET:
            require = []
            for require_item_data in _require:
                require_item = PromotionRequestRequireItem(require_item_data)

                require.append(require_item)

        role = d.pop("role", UNSET)

        promotion_request = cls(
            reason=reason,
            require=require,
            role=role,
        )

        return promotion_request
