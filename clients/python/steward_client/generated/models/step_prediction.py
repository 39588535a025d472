from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

if TYPE_CHECKING:
    from ..models.interval import Interval


T = TypeVar("T", bound="StepPrediction")


@_attrs_define
class StepPrediction:
    """Predicted duration (seconds), speed (samples per second) and efficiency (0 to 1) of a training step."""

    gpus: int
    nodes: int
    node_class: str
    batch: float
    seconds: Interval
    """ A prediction in the metric's unit: mean, and the bounds that hold with probability `level` for an unseen
    run. """
    samples_per_second: float
    slowdown: float
    """ Slowdown by jobs on the same nodes, included in `seconds`; 1 if alone. """
    efficiency: float | None
    """ Value of a sample relative to one of the smallest batch, in the middle of a run; null if no noise scale was
    measured. """
    goodput: float | None
    """ Samples per second × efficiency. """
    measured: bool
    """ Whether the number of GPUs, and of samples on each, is within what was measured; for more samples, seconds
    grow in proportion. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        gpus = self.gpus

        nodes = self.nodes

        node_class = self.node_class

        batch = self.batch

        seconds = self.seconds.to_dict()

        samples_per_second = self.samples_per_second

        slowdown = self.slowdown

        efficiency: float | None
        efficiency = self.efficiency

        goodput: float | None
        goodput = self.goodput

        measured = self.measured

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "gpus": gpus,
                "nodes": nodes,
                "node_class": node_class,
                "batch": batch,
                "seconds": seconds,
                "samples_per_second": samples_per_second,
                "slowdown": slowdown,
                "efficiency": efficiency,
                "goodput": goodput,
                "measured": measured,
            }
        )

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.interval import Interval  # noqa: PLC0415

        d = dict(src_dict)
        gpus = d.pop("gpus")

        nodes = d.pop("nodes")

        node_class = d.pop("node_class")

        batch = d.pop("batch")

        seconds = Interval.from_dict(d.pop("seconds"))

        samples_per_second = d.pop("samples_per_second")

        slowdown = d.pop("slowdown")

        def _parse_efficiency(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        efficiency = _parse_efficiency(d.pop("efficiency"))

        def _parse_goodput(data: object) -> float | None:
            if data is None:
                return data
            return cast(float | None, data)

        goodput = _parse_goodput(d.pop("goodput"))

        measured = d.pop("measured")

        step_prediction = cls(
            gpus=gpus,
            nodes=nodes,
            node_class=node_class,
            batch=batch,
            seconds=seconds,
            samples_per_second=samples_per_second,
            slowdown=slowdown,
            efficiency=efficiency,
            goodput=goodput,
            measured=measured,
        )

        step_prediction.additional_properties = d
        return step_prediction

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
