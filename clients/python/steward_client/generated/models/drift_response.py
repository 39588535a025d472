from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.drift_response_algorithm_type_0 import DriftResponseAlgorithmType0
from ..models.drift_response_respond import DriftResponseRespond
from ..types import UNSET, Unset

T = TypeVar("T", bound="DriftResponse")


@_attrs_define
class DriftResponse:
    """How a workload responds to drift, which is detected in any case."""

    respond: DriftResponseRespond | Unset = DriftResponseRespond.OFF
    """ `retrain`: fit a model to what runs have reported since, train an agent on it, run it as a shadow, promote
    it if it is as good, and roll it back if it underperforms. """
    algorithm: DriftResponseAlgorithmType0 | None | Unset = UNSET
    """ Training algorithm; null: the champion's, or `auto`. """
    budget: int | None | Unset = UNSET
    """ Environment steps of the training; null: the default of trainings. """
    seed: int | Unset = 0
    """ The same seed and samples give the same result. """
    shadow_decisions: int | Unset = 200
    """ Shadow decisions required, without a failure, before the agent may be promoted. """
    window_reports: int | Unset = 500
    """ Reports after the promotion over which the agent is compared with its predecessor. """
    equivalence_margin: float | Unset = 0.01
    """ Margin of practical equivalence, as a share of the best heuristic's return: a loss within it fails no agent,
    a gain within it promotes none. """
    pause_seconds: float | Unset = 3600.0
    """ Time after a response in which further drift is ignored. """

    def to_dict(self) -> dict[str, Any]:
        respond: str | Unset = UNSET
        if not isinstance(self.respond, Unset):
            respond = self.respond.value

        algorithm: None | str | Unset
        if isinstance(self.algorithm, Unset):
            algorithm = UNSET
        elif isinstance(self.algorithm, DriftResponseAlgorithmType0):
            algorithm = self.algorithm.value
        else:
            algorithm = self.algorithm

        budget: int | None | Unset
        if isinstance(self.budget, Unset):
            budget = UNSET
        else:
            budget = self.budget

        seed = self.seed

        shadow_decisions = self.shadow_decisions

        window_reports = self.window_reports

        equivalence_margin = self.equivalence_margin

        pause_seconds = self.pause_seconds

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if respond is not UNSET:
            field_dict["respond"] = respond
        if algorithm is not UNSET:
            field_dict["algorithm"] = algorithm
        if budget is not UNSET:
            field_dict["budget"] = budget
        if seed is not UNSET:
            field_dict["seed"] = seed
        if shadow_decisions is not UNSET:
            field_dict["shadow_decisions"] = shadow_decisions
        if window_reports is not UNSET:
            field_dict["window_reports"] = window_reports
        if equivalence_margin is not UNSET:
            field_dict["equivalence_margin"] = equivalence_margin
        if pause_seconds is not UNSET:
            field_dict["pause_seconds"] = pause_seconds

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _respond = d.pop("respond", UNSET)
        respond: DriftResponseRespond | Unset
        if isinstance(_respond, Unset):
            respond = UNSET
        else:
            respond = DriftResponseRespond(_respond)

        def _parse_algorithm(data: object) -> DriftResponseAlgorithmType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                algorithm_type_0 = DriftResponseAlgorithmType0(data)

                return algorithm_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(DriftResponseAlgorithmType0 | None | Unset, data)

        algorithm = _parse_algorithm(d.pop("algorithm", UNSET))

        def _parse_budget(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        budget = _parse_budget(d.pop("budget", UNSET))

        seed = d.pop("seed", UNSET)

        shadow_decisions = d.pop("shadow_decisions", UNSET)

        window_reports = d.pop("window_reports", UNSET)

        equivalence_margin = d.pop("equivalence_margin", UNSET)

        pause_seconds = d.pop("pause_seconds", UNSET)

        drift_response = cls(
            respond=respond,
            algorithm=algorithm,
            budget=budget,
            seed=seed,
            shadow_decisions=shadow_decisions,
            window_reports=window_reports,
            equivalence_margin=equivalence_margin,
            pause_seconds=pause_seconds,
        )

        return drift_response
