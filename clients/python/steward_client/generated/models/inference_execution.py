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
    from ..models.batches_read import BatchesRead
    from ..models.requests_read import RequestsRead


T = TypeVar("T", bound="InferenceExecution")


@_attrs_define
class InferenceExecution:
    """A stored execution; `iterations` counts requests and batches, `seconds` sums batches and the span of requests."""

    execution: str
    """ The caller's identifier, or the run's. """
    source: str
    """ `upload` or `run`. """
    iterations: int
    """ Number of iterations; for a trace, of tasks. """
    seconds: float
    """ Sum of `iteration_seconds`; for a trace, of run times. """
    created_at: datetime.datetime
    kind: Literal["inference"]
    requests: None | RequestsRead | Unset = UNSET
    """ Its request log, if any. """
    batches: BatchesRead | None | Unset = UNSET
    """ Its measured batches, if any. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.batches_read import BatchesRead  # noqa: PLC0415
        from ..models.requests_read import RequestsRead  # noqa: PLC0415

        execution = self.execution

        source = self.source

        iterations = self.iterations

        seconds = self.seconds

        created_at = self.created_at.isoformat()

        kind = self.kind

        requests: dict[str, Any] | None | Unset
        if isinstance(self.requests, Unset):
            requests = UNSET
        elif isinstance(self.requests, RequestsRead):
            requests = self.requests.to_dict()
        else:
            requests = self.requests

        batches: dict[str, Any] | None | Unset
        if isinstance(self.batches, Unset):
            batches = UNSET
        elif isinstance(self.batches, BatchesRead):
            batches = self.batches.to_dict()
        else:
            batches = self.batches

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
        if requests is not UNSET:
            field_dict["requests"] = requests
        if batches is not UNSET:
            field_dict["batches"] = batches

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batches_read import BatchesRead  # noqa: PLC0415
        from ..models.requests_read import RequestsRead  # noqa: PLC0415

        d = dict(src_dict)
        execution = d.pop("execution")

        source = d.pop("source")

        iterations = d.pop("iterations")

        seconds = d.pop("seconds")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        kind = cast(Literal["inference"], d.pop("kind"))
        if kind != "inference":
            raise ValueError(f"kind must match const 'inference', got '{kind}'")

        def _parse_requests(data: object) -> None | RequestsRead | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                requests_type_0 = RequestsRead.from_dict(data)

                return requests_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | RequestsRead | Unset, data)

        requests = _parse_requests(d.pop("requests", UNSET))

        def _parse_batches(data: object) -> BatchesRead | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                batches_type_0 = BatchesRead.from_dict(data)

                return batches_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BatchesRead | None | Unset, data)

        batches = _parse_batches(d.pop("batches", UNSET))

        inference_execution = cls(
            execution=execution,
            source=source,
            iterations=iterations,
            seconds=seconds,
            created_at=created_at,
            kind=kind,
            requests=requests,
            batches=batches,
        )

        inference_execution.additional_properties = d
        return inference_execution

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
