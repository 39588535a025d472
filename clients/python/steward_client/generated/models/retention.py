from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Retention")


@_attrs_define
class Retention:
    """How many days a workload's data is kept before it is archived and deleted.

    What is active, or what something active depends on, is never deleted.

    """

    iterations_days: float | None | Unset = UNSET
    """ Iterations, after the end of their run; the last one is kept. """
    runs_days: float | None | Unset = UNSET
    """ Runs with all their remaining data, after their end. """
    jobs_days: float | None | Unset = UNSET
    """ Jobs with their events and trials, after their end. """
    events_days: float | None | Unset = UNSET
    """ Events of jobs, after the job's end; the last one is kept. """
    evaluations_days: float | None | Unset = UNSET
    """ Evaluations. """
    artifacts_days: float | None | Unset = UNSET
    """ Superseded agents and models; the newest is kept. """

    def to_dict(self) -> dict[str, Any]:
        iterations_days: float | None | Unset
        if isinstance(self.iterations_days, Unset):
            iterations_days = UNSET
        else:
            iterations_days = self.iterations_days

        runs_days: float | None | Unset
        if isinstance(self.runs_days, Unset):
            runs_days = UNSET
        else:
            runs_days = self.runs_days

        jobs_days: float | None | Unset
        if isinstance(self.jobs_days, Unset):
            jobs_days = UNSET
        else:
            jobs_days = self.jobs_days

        events_days: float | None | Unset
        if isinstance(self.events_days, Unset):
            events_days = UNSET
        else:
            events_days = self.events_days

        evaluations_days: float | None | Unset
        if isinstance(self.evaluations_days, Unset):
            evaluations_days = UNSET
        else:
            evaluations_days = self.evaluations_days

        artifacts_days: float | None | Unset
        if isinstance(self.artifacts_days, Unset):
            artifacts_days = UNSET
        else:
            artifacts_days = self.artifacts_days

        field_dict: dict[str, Any] = {}

        field_dict.update({})
        if iterations_days is not UNSET:
            field_dict["iterations_days"] = iterations_days
        if runs_days is not UNSET:
            field_dict["runs_days"] = runs_days
        if jobs_days is not UNSET:
            field_dict["jobs_days"] = jobs_days
        if events_days is not UNSET:
            field_dict["events_days"] = events_days
        if evaluations_days is not UNSET:
            field_dict["evaluations_days"] = evaluations_days
        if artifacts_days is not UNSET:
            field_dict["artifacts_days"] = artifacts_days

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)

        def _parse_iterations_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        iterations_days = _parse_iterations_days(d.pop("iterations_days", UNSET))

        def _parse_runs_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        runs_days = _parse_runs_days(d.pop("runs_days", UNSET))

        def _parse_jobs_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        jobs_days = _parse_jobs_days(d.pop("jobs_days", UNSET))

        def _parse_events_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        events_days = _parse_events_days(d.pop("events_days", UNSET))

        def _parse_evaluations_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        evaluations_days = _parse_evaluations_days(d.pop("evaluations_days", UNSET))

        def _parse_artifacts_days(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        artifacts_days = _parse_artifacts_days(d.pop("artifacts_days", UNSET))

        retention = cls(
            iterations_days=iterations_days,
            runs_days=runs_days,
            jobs_days=jobs_days,
            events_days=events_days,
            evaluations_days=evaluations_days,
            artifacts_days=artifacts_days,
        )

        return retention
