from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeVar,
    cast,
)

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.report import Report


T = TypeVar("T", bound="ExecutionRead")


@_attrs_define
class ExecutionRead:
    """A stored execution of iterations."""

    execution: str
    """ The caller's identifier, or the run's. """
    source: str
    """ `upload` or `run`. """
    iterations: int
    """ Number of iterations; for a trace, of tasks. """
    seconds: float
    """ Sum of `iteration_seconds`; for a trace, of run times. """
    created_at: datetime.datetime
    kind: Literal["iterative"]
    reports: list[Report] | None | Unset = UNSET
    """ Every iteration, if `reports=true`. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        execution = self.execution

        source = self.source

        iterations = self.iterations

        seconds = self.seconds

        created_at = self.created_at.isoformat()

        kind = self.kind

        reports: list[dict[str, Any]] | None | Unset
        if isinstance(self.reports, Unset):
            reports = UNSET
        elif isinstance(self.reports, list):
            reports = []
            for reports_type_0_item_data in self.reports:
                reports_type_0_item = reports_type_0_item_data.to_dict()
                reports.append(reports_type_0_item)

        else:
            reports = self.reports

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "execution": execution,
                "source": source,
                "iterations": iterations,
                "seconds": seconds,
                "created_at": created_at,
                "kind": kind,
            }
        )
        if reports is not UNSET:
            field_dict["reports"] = reports

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.report import Report  # noqa: PLC0415

        d = dict(src_dict)
        execution = d.pop("execution")

        source = d.pop("source")

        iterations = d.pop("iterations")

        seconds = d.pop("seconds")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        kind = cast(Literal["iterative"], d.pop("kind"))
        if kind != "iterative":
            raise ValueError(f"kind must match const 'iterative', got '{kind}'")

        def _parse_reports(data: object) -> list[Report] | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, list):
                    raise TypeError()
                reports_type_0 = []
                _reports_type_0 = data
                for reports_type_0_item_data in _reports_type_0:
                    reports_type_0_item = Report.from_dict(reports_type_0_item_data)

                    reports_type_0.append(reports_type_0_item)

                return reports_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(list[Report] | None | Unset, data)

        reports = _parse_reports(d.pop("reports", UNSET))

        execution_read = cls(
            execution=execution,
            source=source,
            iterations=iterations,
            seconds=seconds,
            created_at=created_at,
            kind=kind,
            reports=reports,
        )

        execution_read.additional_properties = d
        return execution_read

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
