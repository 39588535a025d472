from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import define as _attrs_define
from attrs import field as _attrs_field

T = TypeVar("T", bound="StoredExecution")


@_attrs_define
class StoredExecution:
    """A stored execution that can't be read, as stored."""

    kind: str
    execution: str
    """ The caller's identifier, or the run's. """
    source: str
    """ `upload` or `run`. """
    iterations: int
    """ Number of iterations; for a trace, of tasks. """
    created_at: datetime.datetime
    problem: str
    """ Why it can't be read, e.g. its kind isn't installed. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        kind = self.kind

        execution = self.execution

        source = self.source

        iterations = self.iterations

        created_at = self.created_at.isoformat()

        problem = self.problem

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "kind": kind,
                "execution": execution,
                "source": source,
                "iterations": iterations,
                "created_at": created_at,
                "problem": problem,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        kind = d.pop("kind")

        execution = d.pop("execution")

        source = d.pop("source")

        iterations = d.pop("iterations")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        problem = d.pop("problem")

        stored_execution = cls(
            kind=kind,
            execution=execution,
            source=source,
            iterations=iterations,
            created_at=created_at,
            problem=problem,
        )

        stored_execution.additional_properties = d
        return stored_execution

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
