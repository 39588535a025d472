from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.iteration_run_start_mode import IterationRunStartMode
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.caps import Caps
    from ..models.iteration_run_start_features_type_0 import (
        IterationRunStartFeaturesType0,
    )
    from ..models.iteration_run_start_probabilities import IterationRunStartProbabilities
    from ..models.iteration_run_start_targets import IterationRunStartTargets
    from ..models.upcoming_iteration import UpcomingIteration


T = TypeVar("T", bound="IterationRunStart")


@_attrs_define
class IterationRunStart:
    """Parameters of a new run of kind ``iterative``."""

    workload: str
    """ Name of the workload. """
    shadow: int | None | Unset = UNSET
    """ Version of an agent to consult as a shadow: its steps are recorded with each decision, without effect. """
    policy: None | str | Unset = UNSET
    """ Name of a rule that decides from the first report on, in place of the promoted agent or the default rule,
    for comparison; null: those. Not together with `shadow`. """
    mode: IterationRunStartMode | Unset = IterationRunStartMode.CONTROL
    """ `advise`: decisions are recommendations that are not applied, and reports have the actual allocation. The
    `savings` of the finished run say what they would have saved, and whether they would have met its targets. """
    token: bool | Unset = False
    """ Whether to create a token that can only report to, end and read this run; for a job that should not hold a
    key. """
    targets: IterationRunStartTargets | Unset = UNSET
    """ Targets of this run only, by metric; the workload's apply otherwise. """
    probabilities: IterationRunStartProbabilities | Unset = UNSET
    """ Required probabilities of meeting targets, for this run only, by metric; null: the weights decide. The
    workload's apply otherwise. """
    first_iteration: int | Unset = 0
    """ First iteration to be reported, if not the workload's first: earlier ones are over and were not measured, or
    not by this run. Targets of the whole run apply to the remaining iterations. """
    features: IterationRunStartFeaturesType0 | None | Unset = UNSET
    """ Features of the first iteration, if known: all of them. """
    caps: Caps | None | Unset = UNSET
    """ Limits of this run: decisions are made within them, and `stop` before an iteration that would pass one. """
    upcoming: list[UpcomingIteration] | Unset = UNSET
    """ The iterations after the first, in order, as in a report. """

    def to_dict(self) -> dict[str, Any]:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.iteration_run_start_features_type_0 import (
            IterationRunStartFeaturesType0,  # noqa: PLC0415
        )

        workload = self.workload

        shadow: int | None | Unset
        if isinstance(self.shadow, Unset):
            shadow = UNSET
        else:
            shadow = self.shadow

        policy: None | str | Unset
        if isinstance(self.policy, Unset):
            policy = UNSET
        else:
            policy = self.policy

        mode: str | Unset = UNSET
        if not isinstance(self.mode, Unset):
            mode = self.mode.value

        token = self.token

        targets: dict[str, Any] | Unset = UNSET
        if not isinstance(self.targets, Unset):
            targets = self.targets.to_dict()

        probabilities: dict[str, Any] | Unset = UNSET
        if not isinstance(self.probabilities, Unset):
            probabilities = self.probabilities.to_dict()

        first_iteration = self.first_iteration

        features: dict[str, Any] | None | Unset
        if isinstance(self.features, Unset):
            features = UNSET
        elif isinstance(self.features, IterationRunStartFeaturesType0):
            features = self.features.to_dict()
        else:
            features = self.features

        caps: dict[str, Any] | None | Unset
        if isinstance(self.caps, Unset):
            caps = UNSET
        elif isinstance(self.caps, Caps):
            caps = self.caps.to_dict()
        else:
            caps = self.caps

        upcoming: list[dict[str, Any]] | Unset = UNSET
        if not isinstance(self.upcoming, Unset):
            upcoming = []
            for upcoming_item_data in self.upcoming:
                upcoming_item = upcoming_item_data.to_dict()
                upcoming.append(upcoming_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
            }
        )
        if shadow is not UNSET:
            field_dict["shadow"] = shadow
        if policy is not UNSET:
            field_dict["policy"] = policy
        if mode is not UNSET:
            field_dict["mode"] = mode
        if token is not UNSET:
            field_dict["token"] = token
        if targets is not UNSET:
            field_dict["targets"] = targets
        if probabilities is not UNSET:
            field_dict["probabilities"] = probabilities
        if first_iteration is not UNSET:
            field_dict["first_iteration"] = first_iteration
        if features is not UNSET:
            field_dict["features"] = features
        if caps is not UNSET:
            field_dict["caps"] = caps
        if upcoming is not UNSET:
            field_dict["upcoming"] = upcoming

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.caps import Caps  # noqa: PLC0415
        from ..models.iteration_run_start_features_type_0 import (
            IterationRunStartFeaturesType0,  # noqa: PLC0415
        )
        from ..models.iteration_run_start_probabilities import (
            IterationRunStartProbabilities,  # noqa: PLC0415
        )
        from ..models.iteration_run_start_targets import IterationRunStartTargets  # noqa: PLC0415
        from ..models.upcoming_iteration import UpcomingIteration  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        def _parse_shadow(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        shadow = _parse_shadow(d.pop("shadow", UNSET))

        def _parse_policy(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        policy = _parse_policy(d.pop("policy", UNSET))

        _mode = d.pop("mode", UNSET)
        mode: IterationRunStartMode | Unset
        if isinstance(_mode, Unset):
            mode = UNSET
        else:
            mode = IterationRunStartMode(_mode)

        token = d.pop("token", UNSET)

        _targets = d.pop("targets", UNSET)
        targets: IterationRunStartTargets | Unset
        if isinstance(_targets, Unset):
            targets = UNSET
        else:
            targets = IterationRunStartTargets.from_dict(_targets)

        _probabilities = d.pop("probabilities", UNSET)
        probabilities: IterationRunStartProbabilities | Unset
        if isinstance(_probabilities, Unset):
            probabilities = UNSET
        else:
            probabilities = IterationRunStartProbabilities.from_dict(_probabilities)

        first_iteration = d.pop("first_iteration", UNSET)

        def _parse_features(data: object) -> IterationRunStartFeaturesType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                features_type_0 = IterationRunStartFeaturesType0.from_dict(data)

                return features_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(IterationRunStartFeaturesType0 | None | Unset, data)

        features = _parse_features(d.pop("features", UNSET))

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

        _upcoming = d.pop("upcoming", UNSET)
        upcoming: list[UpcomingIteration] | Unset = UNSET
        if _upcoming is not UNSET:
            upcoming = []
            for upcoming_item_data in _upcoming:
                upcoming_item = UpcomingIteration.from_dict(upcoming_item_data)

                upcoming.append(upcoming_item)

        iteration_run_start = cls(
            workload=workload,
            shadow=shadow,
            policy=policy,
            mode=mode,
            token=token,
            targets=targets,
            probabilities=probabilities,
            first_iteration=first_iteration,
            features=features,
            caps=caps,
            upcoming=upcoming,
        )

        return iteration_run_start
