from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.job_change_nodes import JobChangeNodes
    from ..models.job_change_trades import JobChangeTrades


T = TypeVar("T", bound="JobChange")


@_attrs_define
class JobChange:
    """Change of one job's GPUs and nodes, with the reason and times to completion in seconds."""

    job: str
    before: int
    """ GPUs before this decision. """
    gpus: int
    """ GPUs from now on; 0: pending. """
    nodes: JobChangeNodes
    """ Its GPUs from now on, by node. """
    code: str
    """ `started`, `grown`, `shrunk`, `moved` or `preempted`. """
    text: str
    trades: JobChangeTrades
    """ GPUs by the other job: gained from it, or lost to it. """
    seconds_left_before: float | None
    """ Expected time to completion on its previous GPUs; null without GPUs, or before its application was measured.
    """
    seconds_left: float | None
    """ The same on its GPUs from now on, including a restart. """
    seconds_left_low: float | None | Unset = UNSET
    """ Lower bound of the time to completion, whatever it has meanwhile: with `seconds_left_high` a 90 % interval,
    by how far off predictions for other jobs of this run were; null until 19 have finished. """
    seconds_left_high: float | None | Unset = UNSET
    """ Upper bound. """
    seconds_wanted: float | None | Unset = UNSET
    """ Time to its deadline, by the targets of its member workload, if any. """
    ceiling: int | None | Unset = UNSET
    """ New maximum of GPUs, as its remaining gain is small; null: unchanged. """
    batch: int | None | Unset = UNSET
    """ Samples per step, over all its GPUs, of the largest goodput; null unless it has `batch_maximum`. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        before = self.before

        gpus = self.gpus

        nodes = self.nodes.to_dict()

        code = self.code

        text = self.text

        trades = self.trades.to_dict()

        seconds_left_before: float | None
        seconds_left_before = self.seconds_left_before

        seconds_left: float | None
        seconds_left = self.seconds_left

        seconds_left_low: float | None | Unset
        if isinstance(self.seconds_left_low, Unset):
            seconds_left_low = UNSET
        else:
            seconds_left_low = self.seconds_left_low

        seconds_left_high: float | None | Unset
        if isinstance(self.seconds_left_high, Unset):
            seconds_left_high = UNSET
        else:
            seconds_left_high = self.seconds_left_high

        seconds_wanted: float | None | Unset
        if isinstance(self.seconds_wanted, Unset):
            seconds_wanted = UNSET
        else:
            seconds_wanted = self.seconds_wanted

        ceiling: int | None | Unset
        if isinstance(self.ceiling, Unset):
            ceiling = UNSET
        else:
            ceiling = self.ceiling

        batch: int | None | Unset
        if isinstance(self.batch, Unset):
            batch = UNSET
        else:
            batch = self.batch

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "job": job,
                "before": before,
                "gpus": gpus,
                "nodes": nodes,
                "code": code,
                "text": text,
                "trades": trades,
                "seconds_left_before": seconds_left_before,
                "seconds_left": seconds_left,
            }
        )
        if seconds_left_low is not UNSET:
            field_dict["seconds_left_low"] = seconds_left_low
        if seconds_left_high is not UNSET:
            field_dict["seconds_left_high"] = seconds_left_high
        if seconds_wanted is not UNSET:
            field_dict["seconds_wanted"] = seconds_wanted
        if ceiling is not UNSET:
            field_dict["ceiling"] = ceiling
        if batch is not UNSET:
            field_dict["batch"] = batch

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.job_change_nodes import JobChangeNodes  # noqa: PLC0415
        from ..models.job_change_trades import JobChangeTrades  # noqa: PLC0415

        d = dict(src_dict)
        job = d.pop("job")

        before = d.pop("before")

        gpus = d.pop("gpus")

        nodes = JobChangeNodes.from_dict(d.pop("nodes"))

        code = d.pop("code")

        text = d.pop("text")

        trades = JobChangeTrades.from_dict(d.pop("trades"))

        def _parse_seconds_left_before(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds_left_before = _parse_seconds_left_before(d.pop("seconds_left_before"))

        def _parse_seconds_left(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        seconds_left = _parse_seconds_left(d.pop("seconds_left"))

        def _parse_seconds_left_low(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds_left_low = _parse_seconds_left_low(d.pop("seconds_left_low", UNSET))

        def _parse_seconds_left_high(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds_left_high = _parse_seconds_left_high(d.pop("seconds_left_high", UNSET))

        def _parse_seconds_wanted(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds_wanted = _parse_seconds_wanted(d.pop("seconds_wanted", UNSET))

        def _parse_ceiling(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        ceiling = _parse_ceiling(d.pop("ceiling", UNSET))

        def _parse_batch(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch = _parse_batch(d.pop("batch", UNSET))

        job_change = cls(
            job=job,
            before=before,
            gpus=gpus,
            nodes=nodes,
            code=code,
            text=text,
            trades=trades,
            seconds_left_before=seconds_left_before,
            seconds_left=seconds_left,
            seconds_left_low=seconds_left_low,
            seconds_left_high=seconds_left_high,
            seconds_wanted=seconds_wanted,
            ceiling=ceiling,
            batch=batch,
        )

        job_change.additional_properties = d
        return job_change

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
