from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.job_read_state import JobReadState
from ..models.job_read_type import JobReadType

if TYPE_CHECKING:
    from ..models.job_read_error_type_0 import JobReadErrorType0
    from ..models.job_read_result_type_0 import JobReadResultType0


T = TypeVar("T", bound="JobRead")


@_attrs_define
class JobRead:
    """A job: its type, state and progress, and its result or error once it has ended."""

    id: str
    type_: JobReadType
    workload: str
    """ Name of the workload. """
    state: JobReadState
    priority: int
    """ A tenant's waiting jobs start in order of priority, highest first; the order among tenants ignores it. """
    progress: float
    eta_seconds: float | None
    """ Estimated seconds until it is done. """
    attempts: int
    """ Number of the current or last attempt, from 1; above 1 if workers were lost; 0 before the first. """
    error: JobReadErrorType0 | None
    """ Problem document of a failed job. """
    result: JobReadResultType0 | None
    """ `{model: version}`, `{agent: version}` or `{evaluation: id}`. """
    created_at: datetime.datetime
    started_at: datetime.datetime | None
    finished_at: datetime.datetime | None
    not_before: datetime.datetime | None
    """ When it resumes, if it waits for its next window. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.job_read_error_type_0 import JobReadErrorType0  # noqa: PLC0415
        from ..models.job_read_result_type_0 import JobReadResultType0  # noqa: PLC0415

        id = self.id

        type_ = self.type_.value

        workload = self.workload

        state = self.state.value

        priority = self.priority

        progress = self.progress

        eta_seconds: float | None
        eta_seconds = self.eta_seconds

        attempts = self.attempts

        error: dict[str, Any] | None
        if isinstance(self.error, JobReadErrorType0):
            error = self.error.to_dict()
        else:
            error = self.error

        result: dict[str, Any] | None
        if isinstance(self.result, JobReadResultType0):
            result = self.result.to_dict()
        else:
            result = self.result

        created_at = self.created_at.isoformat()

        started_at: None | str
        if isinstance(self.started_at, datetime.datetime):
            started_at = self.started_at.isoformat()
        else:
            started_at = self.started_at

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        not_before: None | str
        if isinstance(self.not_before, datetime.datetime):
            not_before = self.not_before.isoformat()
        else:
            not_before = self.not_before

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "type": type_,
                "workload": workload,
                "state": state,
                "priority": priority,
                "progress": progress,
                "eta_seconds": eta_seconds,
                "attempts": attempts,
                "error": error,
                "result": result,
                "created_at": created_at,
                "started_at": started_at,
                "finished_at": finished_at,
                "not_before": not_before,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.job_read_error_type_0 import JobReadErrorType0  # noqa: PLC0415
        from ..models.job_read_result_type_0 import JobReadResultType0  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        type_ = JobReadType(d.pop("type"))

        workload = d.pop("workload")

        state = JobReadState(d.pop("state"))

        priority = d.pop("priority")

        progress = d.pop("progress")

        def _parse_eta_seconds(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        eta_seconds = _parse_eta_seconds(d.pop("eta_seconds"))

        attempts = d.pop("attempts")

        def _parse_error(data: object) -> JobReadErrorType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                error_type_0 = JobReadErrorType0.from_dict(data)

                return error_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JobReadErrorType0 | None, data)

        error = _parse_error(d.pop("error"))

        def _parse_result(data: object) -> JobReadResultType0 | None:
            if data is None:
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                result_type_0 = JobReadResultType0.from_dict(data)

                return result_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(JobReadResultType0 | None, data)

        result = _parse_result(d.pop("result"))

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

        def _parse_started_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                started_at_type_0 = datetime.datetime.fromisoformat(data)

                return started_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        started_at = _parse_started_at(d.pop("started_at"))

        def _parse_finished_at(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                finished_at_type_0 = datetime.datetime.fromisoformat(data)

                return finished_at_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        finished_at = _parse_finished_at(d.pop("finished_at"))

        def _parse_not_before(data: object) -> datetime.datetime | None:
            if data is None:
                return data
            try:
                if not isinstance(data, str):
                    raise TypeError()
                not_before_type_0 = datetime.datetime.fromisoformat(data)

                return not_before_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(datetime.datetime | None, data)

        not_before = _parse_not_before(d.pop("not_before"))

        job_read = cls(
            id=id,
            type_=type_,
            workload=workload,
            state=state,
            priority=priority,
            progress=progress,
            eta_seconds=eta_seconds,
            attempts=attempts,
            error=error,
            result=result,
            created_at=created_at,
            started_at=started_at,
            finished_at=finished_at,
            not_before=not_before,
        )

        job_read.additional_properties = d
        return job_read

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
