from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.prediction_allocation import PredictionAllocation
    from ..models.prediction_features import PredictionFeatures
    from ..models.prediction_predicted import PredictionPredicted


T = TypeVar("T", bound="Prediction")


@_attrs_define
class Prediction:
    """Prediction of an iteration's metrics in their units, with intervals, at an allocation."""

    workload: str
    model: int
    """ Version of the model used. """
    allocation: PredictionAllocation
    iteration: int
    features: PredictionFeatures
    predicted: PredictionPredicted
    """ Predicted values by metric. """
    seen: bool
    """ Whether allocation and features lie within the range of the samples. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        model = self.model

        allocation = self.allocation.to_dict()

        iteration = self.iteration

        features = self.features.to_dict()

        predicted = self.predicted.to_dict()

        seen = self.seen

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "model": model,
                "allocation": allocation,
                "iteration": iteration,
                "features": features,
                "predicted": predicted,
                "seen": seen,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.prediction_allocation import PredictionAllocation  # noqa: PLC0415
        from ..models.prediction_features import PredictionFeatures  # noqa: PLC0415
        from ..models.prediction_predicted import PredictionPredicted  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        model = d.pop("model")

        allocation = PredictionAllocation.from_dict(d.pop("allocation"))

        iteration = d.pop("iteration")

        features = PredictionFeatures.from_dict(d.pop("features"))

        predicted = PredictionPredicted.from_dict(d.pop("predicted"))

        seen = d.pop("seen")

        prediction = cls(
            workload=workload,
            model=model,
            allocation=allocation,
            iteration=iteration,
            features=features,
            predicted=predicted,
            seen=seen,
        )

        prediction.additional_properties = d
        return prediction

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
