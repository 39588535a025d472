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
    from ..models.trace_read import TraceRead


T = TypeVar("T", bound="TraceExecution")


@_attrs_define
class TraceExecution:
    """A trace as it is stored."""

    execution: str
    """ The caller's identifier, or the run's. """
    source: str
    """ `upload` or `run`. """
    iterations: int
    """ Number of iterations; for a trace, of tasks. """
    seconds: float
    """ Sum of `iteration_seconds`; for a trace, of run times. """
    created_at: datetime.datetime
    kind: Literal["workflow"]
    trace: None | TraceRead | Unset = UNSET
    """ Summary of the trace. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.trace_read import TraceRead  # noqa: PLC0415

        execution = self.execution

        source = self.source

        iterations = self.iterations

        seconds = self.seconds

        created_at = self.created_at.isoformat()

        kind = self.kind

        trace: dict[str, Any] | None | Unset
        if isinstance(self.trace, Unset):
            trace = UNSET
        elif isinstance(self.trace, TraceRead):
            trace = self.trace.to_dict()
        else:
            trace = self.trace

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
        if trace is not UNSET:
            field_dict["trace"] = trace

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.trace_read import TraceRead  # noqa: PLC0415

        d = dict(src_dict)
        execution = d.pop("execution")

        source = d.pop("source")

        iterations = d.pop("iterations")

        seconds = d.pop("seconds")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        kind = cast(Literal["workflow"], d.pop("kind"))
        if kind != "workflow":
            raise ValueError(f"kind must match const 'workflow', got '{kind}'")

        def _parse_trace(data: object) -> None | TraceRead | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                trace_type_0 = TraceRead.from_dict(data)

                return trace_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | TraceRead | Unset, data)

        trace = _parse_trace(d.pop("trace", UNSET))

        trace_execution = cls(
            execution=execution,
            source=source,
            iterations=iterations,
            seconds=seconds,
            created_at=created_at,
            kind=kind,
            trace=trace,
        )

        trace_execution.additional_properties = d
        return trace_execution

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
