from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.spread import Spread


T = TypeVar("T", bound="TraceRead")


@_attrs_define
class TraceRead:
    """Summary of a trace; times are in seconds."""

    tasks: int
    edges: int
    """ Number of parent-child pairs. """
    users: int
    workflows: int
    """ Number of workflows; 0: independent jobs. """
    with_run_time: int
    """ Tasks with a known run time. """
    with_estimate: int
    """ Tasks with an estimate by their user. """
    with_memory: int
    """ Tasks with known memory. """
    span_seconds: float
    """ From the first submission to the last. """
    critical_path_seconds: float | None
    """ Longest path through the edges; null if there are none. """
    processor_seconds: float
    """ Sum of run time × processors. """
    run_time_seconds: None | Spread
    processors: None | Spread
    edge_bytes: float
    """ Bytes transferred along all edges. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.spread import Spread  # noqa: PLC0415

        tasks = self.tasks

        edges = self.edges

        users = self.users

        workflows = self.workflows

        with_run_time = self.with_run_time

        with_estimate = self.with_estimate

        with_memory = self.with_memory

        span_seconds = self.span_seconds

        critical_path_seconds: float | None
        critical_path_seconds = self.critical_path_seconds

        processor_seconds = self.processor_seconds

        run_time_seconds: dict[str, Any] | None
        if isinstance(self.run_time_seconds, Spread):
            run_time_seconds = self.run_time_seconds.to_dict()
        else:
            run_time_seconds = self.run_time_seconds

        processors: dict[str, Any] | None
        if isinstance(self.processors, Spread):
            processors = self.processors.to_dict()
        else:
            processors = self.processors

        edge_bytes = self.edge_bytes

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "tasks": tasks,
                "edges": edges,
                "users": users,
                "workflows": workflows,
                "with_run_time": with_run_time,
                "with_estimate": with_estimate,
                "with_memory": with_memory,
                "span_seconds": span_seconds,
                "critical_path_seconds": critical_path_seconds,
                "processor_seconds": processor_seconds,
                "run_time_seconds": run_time_seconds,
                "processors": processors,
                "edge_bytes": edge_bytes,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.spread import Spread  # noqa: PLC0415

        d = dict(src_dict)
        tasks = d.pop("tasks")

        edges = d.pop("edges")

        users = d.pop("users")

        workflows = d.pop("workflows")

        with_run_time = d.pop("with_run_time")

        with_estimate = d.pop("with_estimate")

        with_memory = d.pop("with_memory")

        span_seconds = d.pop("span_seconds")

        def _parse_critical_path_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        critical_path_seconds = _parse_critical_path_seconds(d.pop("critical_path_seconds"))

        processor_seconds = d.pop("processor_seconds")

        def _parse_run_time_seconds(data: object) -> None | Spread:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                run_time_seconds_type_0 = Spread.from_dict(data)

                return run_time_seconds_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Spread, data)

        run_time_seconds = _parse_run_time_seconds(d.pop("run_time_seconds"))

        def _parse_processors(data: object) -> None | Spread:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                processors_type_0 = Spread.from_dict(data)

                return processors_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | Spread, data)

        processors = _parse_processors(d.pop("processors"))

        edge_bytes = d.pop("edge_bytes")

        trace_read = cls(
            tasks=tasks,
            edges=edges,
            users=users,
            workflows=workflows,
            with_run_time=with_run_time,
            with_estimate=with_estimate,
            with_memory=with_memory,
            span_seconds=span_seconds,
            critical_path_seconds=critical_path_seconds,
            processor_seconds=processor_seconds,
            run_time_seconds=run_time_seconds,
            processors=processors,
            edge_bytes=edge_bytes,
        )

        trace_read.additional_properties = d
        return trace_read

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
