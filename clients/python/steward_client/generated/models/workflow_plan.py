from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="WorkflowPlan")


@_attrs_define
class WorkflowPlan:
    """A plan searched for tasks that depend on each other, on the rented nodes."""

    followed: bool
    """ Whether the plan is used; otherwise HEFT decides, as the plan is not over 1 % shorter. """
    made: float
    """ When it was created, in the reports' time. """
    seconds: float
    """ Planned makespan from then. """
    heft_seconds: float
    """ Makespan of HEFT's plan. """
    search_seconds: float
    """ Duration of the search. """
    because: str
    """ Reason for the plan. """
    tasks: int
    """ Number of its tasks that have not ended. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        followed = self.followed

        made = self.made

        seconds = self.seconds

        heft_seconds = self.heft_seconds

        search_seconds = self.search_seconds

        because = self.because

        tasks = self.tasks

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "followed": followed,
                "made": made,
                "seconds": seconds,
                "heft_seconds": heft_seconds,
                "search_seconds": search_seconds,
                "because": because,
                "tasks": tasks,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        followed = d.pop("followed")

        made = d.pop("made")

        seconds = d.pop("seconds")

        heft_seconds = d.pop("heft_seconds")

        search_seconds = d.pop("search_seconds")

        because = d.pop("because")

        tasks = d.pop("tasks")

        workflow_plan = cls(
            followed=followed,
            made=made,
            seconds=seconds,
            heft_seconds=heft_seconds,
            search_seconds=search_seconds,
            because=because,
            tasks=tasks,
        )

        workflow_plan.additional_properties = d
        return workflow_plan

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
