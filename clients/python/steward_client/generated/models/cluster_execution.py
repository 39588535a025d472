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
    from ..models.arrivals_read import ArrivalsRead
    from ..models.curves_read import CurvesRead
    from ..models.steps_read import StepsRead


T = TypeVar("T", bound="ClusterExecution")


@_attrs_define
class ClusterExecution:
    """A stored execution; `iterations` counts its rows, `seconds` sums steps and the span of its job log."""

    execution: str
    """ The caller's identifier, or the run's. """
    source: str
    """ `upload` or `run`. """
    iterations: int
    """ Number of iterations; for a trace, of tasks. """
    seconds: float
    """ Sum of `iteration_seconds`; for a trace, of run times. """
    created_at: datetime.datetime
    kind: Literal["cluster"]
    applications: list[str]
    """ Applications it contains, at most the first 100. """
    steps: None | StepsRead | Unset = UNSET
    """ Its measured steps, if any. """
    curves: CurvesRead | None | Unset = UNSET
    """ Its learning curves, if any. """
    arrivals: ArrivalsRead | None | Unset = UNSET
    """ Its job log, if any. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.arrivals_read import ArrivalsRead  # noqa: PLC0415
        from ..models.curves_read import CurvesRead  # noqa: PLC0415
        from ..models.steps_read import StepsRead  # noqa: PLC0415

        execution = self.execution

        source = self.source

        iterations = self.iterations

        seconds = self.seconds

        created_at = self.created_at.isoformat()

        kind = self.kind

        applications = self.applications

        steps: dict[str, Any] | None | Unset
        if isinstance(self.steps, Unset):
            steps = UNSET
        elif isinstance(self.steps, StepsRead):
            steps = self.steps.to_dict()
        else:
            steps = self.steps

        curves: dict[str, Any] | None | Unset
        if isinstance(self.curves, Unset):
            curves = UNSET
        elif isinstance(self.curves, CurvesRead):
            curves = self.curves.to_dict()
        else:
            curves = self.curves

        arrivals: dict[str, Any] | None | Unset
        if isinstance(self.arrivals, Unset):
            arrivals = UNSET
        elif isinstance(self.arrivals, ArrivalsRead):
            arrivals = self.arrivals.to_dict()
        else:
            arrivals = self.arrivals

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
                "applications": applications,
            }
        )
        if steps is not UNSET:
            field_dict["steps"] = steps
        if curves is not UNSET:
            field_dict["curves"] = curves
        if arrivals is not UNSET:
            field_dict["arrivals"] = arrivals

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.arrivals_read import ArrivalsRead  # noqa: PLC0415
        from ..models.curves_read import CurvesRead  # noqa: PLC0415
        from ..models.steps_read import StepsRead  # noqa: PLC0415

        d = dict(src_dict)
        execution = d.pop("execution")

        source = d.pop("source")

        iterations = d.pop("iterations")

        seconds = d.pop("seconds")

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        kind = cast(Literal["cluster"], d.pop("kind"))
        if kind != "cluster":
            raise ValueError(f"kind must match const 'cluster', got '{kind}'")

        applications = cast(list[str], d.pop("applications"))

        def _parse_steps(data: object) -> None | StepsRead | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                steps_type_0 = StepsRead.from_dict(data)

                return steps_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(None | StepsRead | Unset, data)

        steps = _parse_steps(d.pop("steps", UNSET))

        def _parse_curves(data: object) -> CurvesRead | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                curves_type_0 = CurvesRead.from_dict(data)

                return curves_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(CurvesRead | None | Unset, data)

        curves = _parse_curves(d.pop("curves", UNSET))

        def _parse_arrivals(data: object) -> ArrivalsRead | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                arrivals_type_0 = ArrivalsRead.from_dict(data)

                return arrivals_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(ArrivalsRead | None | Unset, data)

        arrivals = _parse_arrivals(d.pop("arrivals", UNSET))

        cluster_execution = cls(
            execution=execution,
            source=source,
            iterations=iterations,
            seconds=seconds,
            created_at=created_at,
            kind=kind,
            applications=applications,
            steps=steps,
            curves=curves,
            arrivals=arrivals,
        )

        cluster_execution.additional_properties = d
        return cluster_execution

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
