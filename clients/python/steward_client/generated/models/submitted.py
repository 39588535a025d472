from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, cast

from attrs import define as _attrs_define

from ..types import UNSET, Unset

T = TypeVar("T", bound="Submitted")


@_attrs_define
class Submitted:
    """A job that was submitted or is present."""

    job: str
    gpus: int
    """ GPUs requested by its owner """
    queue: None | str | Unset = UNSET
    """ null: the least urgent queue """
    minimum: int | None | Unset = UNSET
    """ null: the spec's, or the GPUs requested if lower """
    maximum: int | None | Unset = UNSET
    """ null: the spec's, or the GPUs requested if higher """
    at: float | None | Unset = UNSET
    """ arrival time; null: the time of the report """
    application: None | str | Unset = UNSET
    """ what it trains: jobs of one application are expected to run at the same speed """
    batch: int | None | Unset = UNSET
    """ samples per step, over all its GPUs; with `batch_maximum`, the smallest it uses """
    batch_maximum: int | None | Unset = UNSET
    """ largest batch that it may choose as its GPUs change, for the largest goodput; null: `batch` is fixed. Needs
    `batch` """
    gpu_batch_minimum: int | None | Unset = UNSET
    """ fewest samples that a GPU processes at once """
    gpu_batch_maximum: int | None | Unset = UNSET
    """ most samples that a GPU processes at once; beyond, gradients are accumulated; null: no limit """
    data: float | None | Unset = UNSET
    """ data size, in one unit per application """
    iterations: float | None | Unset = UNSET
    """ epochs or updates until it is finished, in its own unit; null: unknown """

    def to_dict(self) -> dict[str, Any]:
        job = self.job

        gpus = self.gpus

        queue: None | str | Unset
        if isinstance(self.queue, Unset):
            queue = UNSET
        else:
            queue = self.queue

        minimum: int | None | Unset
        if isinstance(self.minimum, Unset):
            minimum = UNSET
        else:
            minimum = self.minimum

        maximum: int | None | Unset
        if isinstance(self.maximum, Unset):
            maximum = UNSET
        else:
            maximum = self.maximum

        at: float | None | Unset
        if isinstance(self.at, Unset):
            at = UNSET
        else:
            at = self.at

        application: None | str | Unset
        if isinstance(self.application, Unset):
            application = UNSET
        else:
            application = self.application

        batch: int | None | Unset
        if isinstance(self.batch, Unset):
            batch = UNSET
        else:
            batch = self.batch

        batch_maximum: int | None | Unset
        if isinstance(self.batch_maximum, Unset):
            batch_maximum = UNSET
        else:
            batch_maximum = self.batch_maximum

        gpu_batch_minimum: int | None | Unset
        if isinstance(self.gpu_batch_minimum, Unset):
            gpu_batch_minimum = UNSET
        else:
            gpu_batch_minimum = self.gpu_batch_minimum

        gpu_batch_maximum: int | None | Unset
        if isinstance(self.gpu_batch_maximum, Unset):
            gpu_batch_maximum = UNSET
        else:
            gpu_batch_maximum = self.gpu_batch_maximum

        data: float | None | Unset
        if isinstance(self.data, Unset):
            data = UNSET
        else:
            data = self.data

        iterations: float | None | Unset
        if isinstance(self.iterations, Unset):
            iterations = UNSET
        else:
            iterations = self.iterations

        field_dict: dict[str, Any] = {}

        field_dict.update(
            {
                "job": job,
                "gpus": gpus,
            }
        )
        if queue is not UNSET:
            field_dict["queue"] = queue
        if minimum is not UNSET:
            field_dict["minimum"] = minimum
        if maximum is not UNSET:
            field_dict["maximum"] = maximum
        if at is not UNSET:
            field_dict["at"] = at
        if application is not UNSET:
            field_dict["application"] = application
        if batch is not UNSET:
            field_dict["batch"] = batch
        if batch_maximum is not UNSET:
            field_dict["batch_maximum"] = batch_maximum
        if gpu_batch_minimum is not UNSET:
            field_dict["gpu_batch_minimum"] = gpu_batch_minimum
        if gpu_batch_maximum is not UNSET:
            field_dict["gpu_batch_maximum"] = gpu_batch_maximum
        if data is not UNSET:
            field_dict["data"] = data
        if iterations is not UNSET:
            field_dict["iterations"] = iterations

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        d = dict(src_dict)
        job = d.pop("job")

        gpus = d.pop("gpus")

        def _parse_queue(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        queue = _parse_queue(d.pop("queue", UNSET))

        def _parse_minimum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        minimum = _parse_minimum(d.pop("minimum", UNSET))

        def _parse_maximum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        maximum = _parse_maximum(d.pop("maximum", UNSET))

        def _parse_at(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        at = _parse_at(d.pop("at", UNSET))

        def _parse_application(data: object) -> None | str | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(None | str | Unset, data)

        application = _parse_application(d.pop("application", UNSET))

        def _parse_batch(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch = _parse_batch(d.pop("batch", UNSET))

        def _parse_batch_maximum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        batch_maximum = _parse_batch_maximum(d.pop("batch_maximum", UNSET))

        def _parse_gpu_batch_minimum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        gpu_batch_minimum = _parse_gpu_batch_minimum(d.pop("gpu_batch_minimum", UNSET))

        def _parse_gpu_batch_maximum(data: object) -> int | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(int | None | Unset, data)

        gpu_batch_maximum = _parse_gpu_batch_maximum(d.pop("gpu_batch_maximum", UNSET))

        def _parse_data(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        data = _parse_data(d.pop("data", UNSET))

        def _parse_iterations(data: object) -> float | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            return cast(float | None | Unset, data)

        iterations = _parse_iterations(d.pop("iterations", UNSET))

        submitted = cls(
            job=job,
            gpus=gpus,
            queue=queue,
            minimum=minimum,
            maximum=maximum,
            at=at,
            application=application,
            batch=batch,
            batch_maximum=batch_maximum,
            gpu_batch_minimum=gpu_batch_minimum,
            gpu_batch_maximum=gpu_batch_maximum,
            data=data,
            iterations=iterations,
        )

        return submitted
