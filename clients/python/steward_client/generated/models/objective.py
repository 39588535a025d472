from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Objective")


@_attrs_define
class Objective:
    """Relative weights of the objective's terms, each normalised by its reference."""

    slowdown: float | Unset = 1.0
    """ mean bounded slowdown, minus 1 """
    wait: float | Unset = 0.0
    """ mean wait, in hours """
    makespan: float | Unset = 0.0
    """ makespan over its lower bound, minus 1 """
    deadline: float | Unset = 0.0
    """ share of tasks that end after their deadline """
    utilisation: float | Unset = 0.0
    """ share of rented processor time that is idle """
    cost: float | Unset = 0.0
    """ cost relative to the work alone on the cheapest nodes """

    def to_dict(self) -> dict[str, Any]:
        slowdown = self.slowdown

        wait = self.wait

        makespan = self.makespan

        deadline = self.deadline

        utilisation = self.utilisation

        cost = self.cost

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if slowdown is not UNSET:
            field_dict["slowdown"] = slowdown
        if wait is not UNSET:
            field_dict["wait"] = wait
        if makespan is not UNSET:
            field_dict["makespan"] = makespan
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if utilisation is not UNSET:
            field_dict["utilisation"] = utilisation
        if cost is not UNSET:
            field_dict["cost"] = cost

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        slowdown = d.pop("slowdown", UNSET)

        wait = d.pop("wait", UNSET)

        makespan = d.pop("makespan", UNSET)

        deadline = d.pop("deadline", UNSET)

        utilisation = d.pop("utilisation", UNSET)

        cost = d.pop("cost", UNSET)

        objective = cls(
            slowdown=slowdown,
            wait=wait,
            makespan=makespan,
            deadline=deadline,
            utilisation=utilisation,
            cost=cost,
        )

        return objective
