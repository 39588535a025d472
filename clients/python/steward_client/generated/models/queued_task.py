from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.parent import Parent


T = TypeVar("T", bound="QueuedTask")


@_attrs_define
class QueuedTask:
    """A pending task, also after its node failed."""

    id: str
    processors: int | None | Unset = UNSET
    """ required when the task is first named """
    submit: float | None | Unset = UNSET
    """ submission time; null: now, or its start """
    estimate: float | None | Unset = UNSET
    """ seconds requested by its user, at speed 1 """
    memory_gb: float | None | Unset = UNSET
    user: None | str | Unset = UNSET
    deadline: float | None | Unset = UNSET
    """ time by which it should have ended """
    workflow: None | str | Unset = UNSET
    """ workflow it belongs to """
    parents: list[Parent | str] | Unset = UNSET

    def to_dict(self) -> dict[str, Any]:
        from ..models.parent import Parent  # noqa: PLC0415

        id = self.id

        processors: int | None | Unset
        if isinstance(self.processors, Unset):
            processors = UNSET
        else:
            processors = self.processors

        submit: float | None | Unset
        if isinstance(self.submit, Unset):
            submit = UNSET
        else:
            submit = self.submit

        estimate: float | None | Unset
        if isinstance(self.estimate, Unset):
            estimate = UNSET
        else:
            estimate = self.estimate

        memory_gb: float | None | Unset
        if isinstance(self.memory_gb, Unset):
            memory_gb = UNSET
        else:
            memory_gb = self.memory_gb

        user: None | str | Unset
        if isinstance(self.user, Unset):
            user = UNSET
        else:
            user = self.user

        deadline: float | None | Unset
        if isinstance(self.deadline, Unset):
            deadline = UNSET
        else:
            deadline = self.deadline

        workflow: None | str | Unset
        if isinstance(self.workflow, Unset):
            workflow = UNSET
        else:
            workflow = self.workflow

        parents: list[dict[str, Any] | str] | Unset = UNSET
        if not isinstance(self.parents, Unset):
            parents = []
            for parents_item_data in self.parents:
                parents_item: dict[str, Any] | str
                if isinstance(parents_item_data, Parent):
                    parents_item = parents_item_data.to_dict()
                else:
                    parents_item = parents_item_data
                parents.append(parents_item)

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "id": id,
            }
        )
        if processors is not UNSET:
            field_dict["processors"] = processors
        if submit is not UNSET:
            field_dict["submit"] = submit
        if estimate is not UNSET:
            field_dict["estimate"] = estimate
        if memory_gb is not UNSET:
            field_dict["memory_gb"] = memory_gb
        if user is not UNSET:
            field_dict["user"] = user
        if deadline is not UNSET:
            field_dict["deadline"] = deadline
        if workflow is not UNSET:
            field_dict["workflow"] = workflow
        if parents is not UNSET:
            field_dict["parents"] = parents

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.parent import Parent  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        def _parse_processors(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        processors = _parse_processors(d.pop("processors", UNSET))

        def _parse_submit(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        submit = _parse_submit(d.pop("submit", UNSET))

        def _parse_estimate(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        estimate = _parse_estimate(d.pop("estimate", UNSET))

        def _parse_memory_gb(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        memory_gb = _parse_memory_gb(d.pop("memory_gb", UNSET))

        def _parse_user(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        user = _parse_user(d.pop("user", UNSET))

        def _parse_deadline(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        deadline = _parse_deadline(d.pop("deadline", UNSET))

        def _parse_workflow(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        workflow = _parse_workflow(d.pop("workflow", UNSET))

        _parents = d.pop("parents", UNSET)
        parents: list[Parent | str] | Unset = UNSET
        if _parents is not UNSET:
            parents = []
            for parents_item_data in _parents:

                def _parse_parents_item(data: object) -> Parent | str:
                    try:
                        if not isinstance(data, dict):
                            raise TypeError()
                        parents_item_type_1 = Parent.from_dict(data)

                        return parents_item_type_1
                    except (TypeError, ValueError, AttributeError, KeyError):
                        pass
                    return cast(Parent | str, data)

                parents_item = _parse_parents_item(parents_item_data)

                parents.append(parents_item)

        queued_task = cls(
            id=id,
            processors=processors,
            submit=submit,
            estimate=estimate,
            memory_gb=memory_gb,
            user=user,
            deadline=deadline,
            workflow=workflow,
            parents=parents,
        )

        return queued_task
