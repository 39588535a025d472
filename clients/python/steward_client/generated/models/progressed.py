from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Progressed")


@_attrs_define
class Progressed:
    """Progress of a job and its recent measurements, with the conditions they were taken under."""

    job: str
    iteration: float
    """ completed so far; fewer than before: it resumed from a checkpoint """
    loss: float | None | Unset = UNSET
    """ lower is better; or `metric` """
    metric: float | None | Unset = UNSET
    """ higher is better; or `loss` """
    seconds: float | None | Unset = UNSET
    """ recent duration of one step """
    computing: float | None | Unset = UNSET
    """ part of the step not spent waiting for other GPUs """
    gpus: int | None | Unset = UNSET
    """ GPUs it was measured on; null: its current ones """
    nodes: int | None | Unset = UNSET
    """ nodes these were spread over; null: as few as they fill """
    beside: list[str] | Unset = UNSET
    """ applications of jobs that shared its nodes then; empty: none """
    batch: int | None | Unset = UNSET
    """ samples per step then, over all GPUs; null: as submitted """
    noise_scale: float | None | Unset = UNSET
    """ gradient noise scale, in samples """

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        iteration = self.iteration

        loss: float | None | Unset
        if isinstance(self.loss, Unset):
            loss = UNSET
        else:
            loss = self.loss

        metric: float | None | Unset
        if isinstance(self.metric, Unset):
            metric = UNSET
        else:
            metric = self.metric

        seconds: float | None | Unset
        if isinstance(self.seconds, Unset):
            seconds = UNSET
        else:
            seconds = self.seconds

        computing: float | None | Unset
        if isinstance(self.computing, Unset):
            computing = UNSET
        else:
            computing = self.computing

        gpus: int | None | Unset
        if isinstance(self.gpus, Unset):
            gpus = UNSET
        else:
            gpus = self.gpus

        nodes: int | None | Unset
        if isinstance(self.nodes, Unset):
            nodes = UNSET
        else:
            nodes = self.nodes

        beside: list[str] | Unset = UNSET
        if not isinstance(self.beside, Unset):
            beside = self.beside

        batch: int | None | Unset
        if isinstance(self.batch, Unset):
            batch = UNSET
        else:
            batch = self.batch

        noise_scale: float | None | Unset
        if isinstance(self.noise_scale, Unset):
            noise_scale = UNSET
        else:
            noise_scale = self.noise_scale

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "job": job,
                "iteration": iteration,
            }
        )
        if loss is not UNSET:
            field_dict["loss"] = loss
        if metric is not UNSET:
            field_dict["metric"] = metric
        if seconds is not UNSET:
            field_dict["seconds"] = seconds
        if computing is not UNSET:
            field_dict["computing"] = computing
        if gpus is not UNSET:
            field_dict["gpus"] = gpus
        if nodes is not UNSET:
            field_dict["nodes"] = nodes
        if beside is not UNSET:
            field_dict["beside"] = beside
        if batch is not UNSET:
            field_dict["batch"] = batch
        if noise_scale is not UNSET:
            field_dict["noise_scale"] = noise_scale

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        iteration = d.pop("iteration")

        def _parse_loss(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        loss = _parse_loss(d.pop("loss", UNSET))

        def _parse_metric(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        metric = _parse_metric(d.pop("metric", UNSET))

        def _parse_seconds(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        seconds = _parse_seconds(d.pop("seconds", UNSET))

        def _parse_computing(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        computing = _parse_computing(d.pop("computing", UNSET))

        def _parse_gpus(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        gpus = _parse_gpus(d.pop("gpus", UNSET))

        def _parse_nodes(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        nodes = _parse_nodes(d.pop("nodes", UNSET))

        beside = cast(list[str], d.pop("beside", UNSET))

        def _parse_batch(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch = _parse_batch(d.pop("batch", UNSET))

        def _parse_noise_scale(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        noise_scale = _parse_noise_scale(d.pop("noise_scale", UNSET))

        progressed = cls(
            job=job,
            iteration=iteration,
            loss=loss,
            metric=metric,
            seconds=seconds,
            computing=computing,
            gpus=gpus,
            nodes=nodes,
            beside=beside,
            batch=batch,
            noise_scale=noise_scale,
        )

        return progressed
