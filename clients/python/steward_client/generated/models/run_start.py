from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.run_start_features_type_0 import RunStartFeaturesType0
    from ..models.run_start_targets import RunStartTargets


T = TypeVar("T", bound="RunStart")


@_attrs_define
class RunStart:
    """Start a live run of a workload."""

    workload: str
    """ Name of the workload. """
    targets: RunStartTargets | Unset = UNSET
    """ Targets of this run alone, by metric; the workload's hold for the rest. """
    features: None | RunStartFeaturesType0 | Unset = UNSET
    """ Features of the first iteration, if they are known: all of them. """
    shadow: int | None | Unset = UNSET
    """ Version of an agent that is asked beside the one that answers: its steps are written down with each
    decision, and change nothing. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.run_start_features_type_0 import RunStartFeaturesType0  # noqa: PLC0415

        workload = self.workload

        targets: dict[str, Any] | Unset = UNSET
        if not isinstance(self.targets, Unset):
            targets = self.targets.to_dict()

        features: dict[str, Any] | None | Unset
        if isinstance(self.features, Unset):
            features = UNSET
        elif isinstance(self.features, RunStartFeaturesType0):
            features = self.features.to_dict()
        else:
            features = self.features

        shadow: int | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        else:
            shadow = self.shadow

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
            }
        )
        if targets is not UNSET:
            field_dict["targets"] = targets
        if features is not UNSET:
            field_dict["features"] = features
        if shadow is not UNSET:
            field_dict["shadow"] = shadow

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.run_start_features_type_0 import RunStartFeaturesType0  # noqa: PLC0415
        from ..models.run_start_targets import RunStartTargets  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        _targets = d.pop("targets", UNSET)
        targets: RunStartTargets | Unset
        if isinstance(_targets, Unset):
            targets = UNSET
        else:
            targets = RunStartTargets.from_dict(_targets)

        def _parse_features(data: object) -> None | RunStartFeaturesType0 | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                features_type_0 = RunStartFeaturesType0.from_dict(data)

                return features_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RunStartFeaturesType0 | Unset, data)

        features = _parse_features(d.pop("features", UNSET))

        def _parse_shadow(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        run_start = cls(
            workload=workload,
            targets=targets,
            features=features,
            shadow=shadow,
        )

        return run_start
