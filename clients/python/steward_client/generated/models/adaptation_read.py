from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..models.adaptation_read_state import AdaptationReadState

if TYPE_CHECKING:
    from ..models.drift_notice import DriftNotice
    from ..models.drift_step import DriftStep


T = TypeVar("T", bound="AdaptationRead")


@_attrs_define
class AdaptationRead:
    """The adaptation to one drift: its notice, the jobs, model and agent made for it, and its steps."""

    id: str
    state: AdaptationReadState
    run: str
    """ The run that detected it. """
    notice: DriftNotice
    """ A quantity that deviates from the domain model. """
    job: None | str
    """ The most recent fit or training job. """
    model: int | None
    """ Version of the fitted domain model. """
    agent: int | None
    """ Version of the trained agent. """
    predecessor: int | None
    """ Version of the agent that served before; null: a heuristic. """
    steps: list[DriftStep]
    created_at: datetime.datetime
    finished_at: datetime.datetime | None
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        id = self.id

        state = self.state.value

        run = self.run

        notice = self.notice.to_dict()

        job: None | str
        job = self.job

        model: int | None
        model = self.model

        agent: int | None
        agent = self.agent

        predecessor: int | None
        predecessor = self.predecessor

        steps = []
        for steps_item_data in self.steps:
            steps_item = steps_item_data.to_dict()
            steps.append(steps_item)

        created_at = self.created_at.isoformat()

        finished_at: None | str
        if isinstance(self.finished_at, datetime.datetime):
            finished_at = self.finished_at.isoformat()
        else:
            finished_at = self.finished_at

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "id": id,
                "state": state,
                "run": run,
                "notice": notice,
                "job": job,
                "model": model,
                "agent": agent,
                "predecessor": predecessor,
                "steps": steps,
                "created_at": created_at,
                "finished_at": finished_at,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.drift_notice import DriftNotice  # noqa: PLC0415
        from ..models.drift_step import DriftStep  # noqa: PLC0415

        d = dict(src_dict)
        id = d.pop("id")

        state = AdaptationReadState(d.pop("state"))

        run = d.pop("run")

        notice = DriftNotice.from_dict(d.pop("notice"))

        def _parse_job(data: object) -> None | str:
            if data is None:
                return data
            return cast(None | str, data)

        job = _parse_job(d.pop("job"))

        def _parse_model(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        model = _parse_model(d.pop("model"))

        def _parse_agent(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        agent = _parse_agent(d.pop("agent"))

        def _parse_predecessor(data: object) -> int | None:
            if data is None:
                return data
            return cast(int | None, data)

        predecessor = _parse_predecessor(d.pop("predecessor"))

        steps = []
        _steps = d.pop("steps")
        for steps_item_data in _steps:
            steps_item = DriftStep.from_dict(steps_item_data)

            steps.append(steps_item)

        created_at = datetime.datetime.fromisoformat(d.pop("created_at"))

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

        adaptation_read = cls(
            id=id,
            state=state,
            run=run,
            notice=notice,
            job=job,
            model=model,
            agent=agent,
            predecessor=predecessor,
            steps=steps,
            created_at=created_at,
            finished_at=finished_at,
        )

        adaptation_read.additional_properties = d
        return adaptation_read

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
