from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..models.evaluation_request_agents_item_type_1 import (
    EvaluationRequestAgentsItemType1,
)
from ..models.evaluation_request_level import EvaluationRequestLevel
from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.held_out import HeldOut


T = TypeVar("T", bound="EvaluationRequest")


@_attrs_define
class EvaluationRequest:
    """Agents to evaluate, up to which level, and in how many seeds and episodes."""

    workload: str
    """ Name of the workload. """
    agents: list[EvaluationRequestAgentsItemType1 | int] | Unset = UNSET
    """ Versions, `champion` or `newest`; a single one needs no list. """
    level: EvaluationRequestLevel | Unset = EvaluationRequestLevel.L4
    """ Highest level; lower ones are evaluated first. """
    seeds: int | Unset = 5
    """ Independent simulated worlds per level. """
    episodes: int | Unset = 256
    """ Runs per seed and level. """
    seed: int | Unset = 0
    """ The same seed and samples give the same result. """
    model: int | None | Unset = UNSET
    """ Version of the domain model to evaluate under; default: the newest. """
    equivalence_margin: float | Unset = 0.01
    """ Margin of practical equivalence, as a share of the best heuristic's return: a loss within it fails no agent,
    a gain within it promotes none. """
    held_out: HeldOut | Unset = UNSET
    """ What level L3 holds out: executions to fit its domain model on, or another part of the workload. """
    priority: int | Unset = 0
    """ A tenant's waiting jobs start in order of priority, highest first; the order among tenants ignores it. """

    def to_dict(self) -> dict[str, Any]:
        workload = self.workload

        agents: list[int | str] | Unset = UNSET
        if not isinstance(self.agents, Unset):
            agents = []
            for agents_item_data in self.agents:
                agents_item: int | str
                if isinstance(agents_item_data, EvaluationRequestAgentsItemType1):
                    agents_item = agents_item_data.value
                else:
                    agents_item = agents_item_data
                agents.append(agents_item)

        level: str | Unset = UNSET
        if not isinstance(self.level, Unset):
            level = self.level.value

        seeds = self.seeds

        episodes = self.episodes

        seed = self.seed

        model: int | None | Unset
        if isinstance(self.model, Unset):
            model = UNSET
        else:
            model = self.model

        equivalence_margin = self.equivalence_margin

        held_out: dict[str, Any] | Unset = UNSET
        if not isinstance(self.held_out, Unset):
            held_out = self.held_out.to_dict()

        priority = self.priority

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "workload": workload,
            }
        )
        if agents is not UNSET:
            field_dict["agents"] = agents
        if level is not UNSET:
            field_dict["level"] = level
        if seeds is not UNSET:
            field_dict["seeds"] = seeds
        if episodes is not UNSET:
            field_dict["episodes"] = episodes
        if seed is not UNSET:
            field_dict["seed"] = seed
        if model is not UNSET:
            field_dict["model"] = model
        if equivalence_margin is not UNSET:
            field_dict["equivalence_margin"] = equivalence_margin
        if held_out is not UNSET:
            field_dict["held_out"] = held_out
        if priority is not UNSET:
            field_dict["priority"] = priority

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.held_out import HeldOut  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        _agents = d.pop("agents", UNSET)
        agents: list[EvaluationRequestAgentsItemType1 | int] | Unset = UNSET
        if _agents is not UNSET:
            agents = []
            for agents_item_data in _agents:

                def _parse_agents_item(data: object) -> EvaluationRequestAgentsItemType1 | int:
                    try:
                        if not isinstance(data, str):
                            raise TypeError()
                        agents_item_type_1 = EvaluationRequestAgentsItemType1(data)

                        return agents_item_type_1
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    return cast(EvaluationRequestAgentsItemType1 | int, data)

                agents_item = _parse_agents_item(agents_item_data)

                agents.append(agents_item)

        _level = d.pop("level", UNSET)
        level: EvaluationRequestLevel | Unset
        if isinstance(_level, Unset):
            level = UNSET
        else:
            level = EvaluationRequestLevel(_level)

        seeds = d.pop("seeds", UNSET)

        episodes = d.pop("episodes", UNSET)

        seed = d.pop("seed", UNSET)

        def _parse_model(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        model = _parse_model(d.pop("model", UNSET))

        equivalence_margin = d.pop("equivalence_margin", UNSET)

        _held_out = d.pop("held_out", UNSET)
        held_out: HeldOut | Unset
        if isinstance(_held_out, Unset):
            held_out = UNSET
        else:
            held_out = HeldOut.from_dict(_held_out)

        priority = d.pop("priority", UNSET)

        evaluation_request = cls(
            workload=workload,
            agents=agents,
            level=level,
            seeds=seeds,
            episodes=episodes,
            seed=seed,
            model=model,
            equivalence_margin=equivalence_margin,
            held_out=held_out,
            priority=priority,
        )

        return evaluation_request
