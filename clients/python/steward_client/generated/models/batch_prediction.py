from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

from attrs import define as _attrs_define
from attrs import field as _attrs_field

from ..types import UNSET, Unset

if TYPE_CHECKING:
    from ..models.batch_prediction_arrivals_type_0 import BatchPredictionArrivalsType0
    from ..models.interval import Interval


T = TypeVar("T", bound="BatchPrediction")


@_attrs_define
class BatchPrediction:
    """Predictions for a batch, and for arrivals."""

    workload: str
    model: int
    """ Version of the model used. """
    variant: str
    batch: int
    server: str
    seconds: Interval
    """ A prediction in the metric's unit: mean, and the bounds that hold with probability `level` for an unseen
    run. """
    measured: bool
    """ Whether the variant was measured on this server class. """
    arrivals: BatchPredictionArrivalsType0 | None | Unset = UNSET
    """ Requests per second by user, in the control interval at `at`; null if not given. """
    additional_properties: dict[str, Any] = _attrs_field(init=False, factory=dict)

    def to_dict(self) -> dict[str, Any]:
        from ..models.batch_prediction_arrivals_type_0 import (
            BatchPredictionArrivalsType0,  # noqa: PLC0415
        )

        workload = self.workload

        model = self.model

        variant = self.variant

        batch = self.batch

        server = self.server

        seconds = self.seconds.to_dict()

        measured = self.measured

        arrivals: dict[str, Any] | None | Unset
        if isinstance(self.arrivals, Unset):
            arrivals = UNSET
        elif isinstance(self.arrivals, BatchPredictionArrivalsType0):
            arrivals = self.arrivals.to_dict()
        else:
            arrivals = self.arrivals

        field_dict: dict[str, Any] = {}
        field_dict.update(self.additional_properties)
        field_dict.update(
            {
                "workload": workload,
                "model": model,
                "variant": variant,
                "batch": batch,
                "server": server,
                "seconds": seconds,
                "measured": measured,
            }
        )
        if arrivals is not UNSET:
            field_dict["arrivals"] = arrivals

        return field_dict

    @classmethod
    def from_dict(cls: type[T], src_dict: Mapping[str, Any]) -> T:
        from ..models.batch_prediction_arrivals_type_0 import (
            BatchPredictionArrivalsType0,  # noqa: PLC0415
        )
        from ..models.interval import Interval  # noqa: PLC0415

        d = dict(src_dict)
        workload = d.pop("workload")

        model = d.pop("model")

        variant = d.pop("variant")

        batch = d.pop("batch")

        server = d.pop("server")

        seconds = Interval.from_dict(d.pop("seconds"))

        measured = d.pop("measured")

        def _parse_arrivals(data: object) -> BatchPredictionArrivalsType0 | None | Unset:
            if data is None:
                return data
            if isinstance(data, Unset):
                return data
            try:
                if not isinstance(data, dict):
                    raise TypeError()
                arrivals_type_0 = BatchPredictionArrivalsType0.from_dict(data)

                return arrivals_type_0
            except (TypeError, ValueError, AttributeError, KeyError):
                pass
            return cast(BatchPredictionArrivalsType0 | None | Unset, data)

        arrivals = _parse_arrivals(d.pop("arrivals", UNSET))

        batch_prediction = cls(
            workload=workload,
            model=model,
            variant=variant,
            batch=batch,
            server=server,
            seconds=seconds,
            measured=measured,
            arrivals=arrivals,
        )

        batch_prediction.additional_properties = d
        return batch_prediction

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
