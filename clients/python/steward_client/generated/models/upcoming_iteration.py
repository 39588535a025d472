from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define

if TYPE_CHECKING:
    from ..models.upcoming_iteration_features import UpcomingIterationFeatures


T = TypeVar("T", bound="UpcomingIteration")


@_attrs_define
class UpcomingIteration:
    """Features of an iteration that are known in advance."""

    features: UpcomingIterationFeatures
    """ All of the workload's features. """

    def to_dict(self) -> dict[str, Any]:
        features = self.features.to_dict()

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "features": features,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.upcoming_iteration_features import UpcomingIterationFeatures  # noqa: PLC0415

        d = dict(src_dict)
        features = UpcomingIterationFeatures.from_dict(d.pop("features"))

        upcoming_iteration = cls(
            features=features,
        )

        return upcoming_iteration
