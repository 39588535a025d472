"""The domain model of an ``inference`` workload: how long batches take, and how requests arrive.

A batch of a variant on a server of a class takes ``exp(log_seconds[member] + spread · normal)``; members are models
that the samples can't tell apart. Requests of a user come as a Poisson process whose rate follows the time of day,
times gamma variables of mean 1 that hold for a moment, a control interval, or longer: bursts and slow changes apart.
The index of dispersion of counts is then above 1, the more so the longer they are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.inference.layout import Layout
from app.kinds.tensors import read_tensors, written

Floats = NDArray[np.float64]
FORMAT = "inference-2"
DAY_SECONDS = 86_400.0
LASTING = np.array([0.1, 1.0, 6.0, 60.0])
"""For how many control intervals each part of the variation of a rate holds."""
NORMAL_90 = 1.6448536269514722  # standard normal quantile at 0.95


@dataclass(frozen=True, eq=False)
class ServiceModel:
    """M members, C server classes, V variants, K batch sizes, U users, P parts of a day.

    Attributes:
        log_seconds: natural log of the median seconds of a batch, [M, C, V, K].
        spread: standard deviation of the log of one batch about its median, [V].
        rate: requests per second by part of the day, which begins at 0:00 UTC, [U, P].
        variation: squared coefficient of variation of the rate from one control interval to the next, [U].
        measured: whether a variant was measured on a class, in any batch size, [C, V].
        forecast: what the last minutes say of the next control interval, and what is known of one without them,
            [U, 2, 17]: see ``app.kinds.inference.forecast``; empty where nothing is known of it.
        parts: squared coefficients of variation of the rate's factors, by how long these hold (``LASTING``), [U, 4];
            empty where there is but ``variation``.
        forecasts: what ``app.kinds.forecasting.forecaster.written`` made of forecasters by user; empty without any.
    """

    log_seconds: Floats
    spread: Floats
    rate: Floats
    variation: Floats
    measured: NDArray[np.bool_]
    forecast: Floats = field(default_factory=lambda: np.zeros((0, 2, 17)))
    parts: Floats = field(default_factory=lambda: np.zeros((0, len(LASTING))))
    forecasts: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))

    def seconds(self) -> Floats:
        """Mean seconds of a batch over members and spread, [C, V, K]."""
        median: Floats = np.exp(self.log_seconds).mean(axis=0)
        factor = np.exp(self.spread**2 / 2)
        return median * factor[None, :, None]

    def varying(self) -> Floats:
        """``parts``, or what there is of them, [U, 4]."""
        if len(self.parts):
            return self.parts
        return self.variation[:, None] * (LASTING == 1.0)

    def interval(self) -> tuple[Floats, Floats]:
        """Bounds of the 90 % interval of the seconds of one batch, [C, V, K] each: members and spread together."""
        centre, apart = self.log_seconds.mean(axis=0), self.log_seconds.std(axis=0)
        half = NORMAL_90 * np.sqrt(apart**2 + self.spread[None, :, None] ** 2)
        return np.exp(centre - half), np.exp(centre + half)

    def check(self, layout: Layout) -> None:
        """Make sure that it is of a layout.

        Raises:
            IncompatibleModel: it is of another one.
        """
        users, variants, batches = layout.shape
        shape = self.log_seconds.shape[1:], self.rate.shape[0]
        expected = (len(layout.servers), variants, batches), users
        if shape != expected:
            raise IncompatibleModel(f"the model is of (classes, variants, batches), users {shape}, not {expected}")

    def to_bytes(self) -> bytes:
        """As safetensors; equal models give equal bytes."""
        return written({name: np.asarray(value) for name, value in vars(self).items()}, {"format": FORMAT})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """What ``to_bytes`` wrote.

        Raises:
            IncompatibleModel: ``data`` is no such model, or one of another version.
        """
        try:
            header, arrays = read_tensors(data)
            version = header.get("format")
            if version != FORMAT:
                raise IncompatibleModel(f"the model has format {version}, this version reads {FORMAT}")
            return cls(**arrays)
        except (ValueError, TypeError, KeyError) as error:
            raise IncompatibleModel(f"no domain model of kind inference: {error}") from error
