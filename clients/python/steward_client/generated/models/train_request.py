from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.train_request_algorithm import TrainRequestAlgorithm
from ..types import UNSET, Unset

T = TypeVar("T", bound="TrainRequest")


@_attrs_define
class TrainRequest:
    """What may be said about a training; all of it is optional."""

    algorithm: TrainRequestAlgorithm | Unset = TrainRequestAlgorithm.AUTO
    """ `auto` lets several compete and keeps the best. """
    budget: int | None | Unset = UNSET
    """ Environment steps to train for; default: chosen by the algorithm. """
    seed: int | Unset = 0
    """ Same seed, same samples: the same result. """
    model: int | None | Unset = UNSET
    """ Version of the domain model to train on; default: the newest. """
    promote: bool | Unset = True
    """ Whether the agent becomes the champion when it is good enough; else it waits. """

    def to_dict(self) -> dict[str, Any]:
        algorithm: str | Unset = UNSET
        if not isinstance(self.algorithm, Unset):
            algorithm = self.algorithm.value

        budget: int | None | Unset
        if isinstance(self.budget, Unset):
            budget = UNSET
        else:
            budget = self.budget

        seed = self.seed

        model: int | None | Unset
        if isinstance(self.model, Unset):
            model = UNSET
        else:
            model = self.model

        promote = self.promote

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if algorithm is not UNSET:
            field_dict["algorithm"] = algorithm
        if budget is not UNSET:
            field_dict["budget"] = budget
        if seed is not UNSET:
            field_dict["seed"] = seed
        if model is not UNSET:
            field_dict["model"] = model
        if promote is not UNSET:
            field_dict["promote"] = promote

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        _algorithm = d.pop("algorithm", UNSET)
        algorithm: TrainRequestAlgorithm | Unset
        if isinstance(_algorithm, Unset):
            algorithm = UNSET
        else:
            algorithm = TrainRequestAlgorithm(_algorithm)

        def _parse_budget(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        budget = _parse_budget(d.pop("budget", UNSET))

        seed = d.pop("seed", UNSET)

        def _parse_model(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        model = _parse_model(d.pop("model", UNSET))

        promote = d.pop("promote", UNSET)

        train_request = cls(
            algorithm=algorithm,
            budget=budget,
            seed=seed,
            model=model,
            promote=promote,
        )

        return train_request
