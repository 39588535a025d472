"""The domain model of kind `inference`, its forecasts and the queries that it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import LATEST_MOMENT, IncompatibleModel, invalid
from app.kinds.contract.kind import Parameter
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
            [U, 2, 17]: see ``app.kinds.inference.model``; empty where nothing is known of it.
        parts: squared coefficients of variation of the rate's factors, by how long these hold (``LASTING``), [U, 4];
            empty where there is but ``variation``.
        forecasts: what ``app.kinds.forecasting.answer.written`` made of forecasters by user; empty without any.
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


# How many requests will come: the usual rate at a time of day, corrected by how the last minutes differed from it.


HOUR = 3600.0
LEAST_RATE = 1e-9
MOST_VARIATION = 2.0  # of a gamma variable that is told by eighths
WEIGHT, WINDOW, VARIATION, LOW, HIGH, TYPICAL, LAG, TREND, SLOW = range(9)
"""Columns of ``ServiceModel.forecast``: what of a recent difference stays; the seconds over which recent rates are
smoothed; squared coefficient of variation about the forecast; quantiles of the error over its standard deviation; the
median rate over the mean, which bursts lift; what of the usual change goes on, and of that of late; the longer seconds
over which rates are smoothed that tell of the change of late. After them, over the forecast, at least one request an
interval, means of eighths of what came, ascending: ``CAME``."""
CAME = slice(9, 17)
EIGHTHS = np.array([-1.5341, -0.8871, -0.4888, -0.1573, 0.1573, 0.4888, 0.8871, 1.5341])
"""A standard normal variable at their middles."""


def spread(variation: ArrayLike) -> Floats:
    """A gamma variable of mean 1 at the middles of eighths, [..., 8]; by Wilson and Hilferty (1931).

    Args:
        variation: its squared coefficient of variation.
    """
    ninth = np.minimum(np.asarray(variation, np.float64), MOST_VARIATION)[..., None] / 9
    values = np.maximum(1 - ninth + EIGHTHS * np.sqrt(ninth), 0.0) ** 3
    return np.asarray(values / values.mean(axis=-1, keepdims=True))


UNKNOWN = np.array([0.0, HOUR, 1.0, -NORMAL_90, NORMAL_90, 1.0, 0.0, 0.0, HOUR, *spread(1.0)])
"""Such numbers where too little is known to fit any."""


def going_on(variation: ArrayLike) -> Floats:
    """Such numbers of U users whose rates of late go on, whatever is usual, [U, 17].

    Args:
        variation: squared coefficient of variation about them, [U].
    """
    told = np.asarray(variation, np.float64)
    numbers = np.tile(UNKNOWN, (len(told), 1))
    numbers[:, WEIGHT], numbers[:, VARIATION], numbers[:, CAME] = 1.0, told, spread(told)
    return numbers


class Forecast(NamedTuple):
    """Requests per second, and the bounds of a 90 % interval of what a control interval will have; broadcast."""

    mean: Floats
    low: Floats
    high: Floats


def usual_rate(rate: Floats, at: ArrayLike) -> Floats:
    """Requests per second at times, of a profile [P] over the day: linear between the middles of its parts.

    Args:
        at: seconds since some 0:00 UTC.
    """
    place = np.asarray(at, np.float64) % DAY_SECONDS / (DAY_SECONDS / len(rate)) - 0.5
    part = np.floor(place).astype(np.int64)
    share = place - part
    return (1 - share) * rate[part % len(rate)] + share * rate[(part + 1) % len(rate)]


class Recent(NamedTuple):
    """Rates at the moment of a forecast: smoothed ones, as they are usual, and smoothed for longer; broadcast."""

    rate: Floats
    usual: Floats
    slow: Floats


def corrected(usual: Floats, recent: Recent, numbers: Floats) -> Floats:
    """Usual rates, corrected by those of late and by how they change; at least 0. ``numbers`` as above, [..., 17]."""
    weight, lag, trend = (numbers[..., column] for column in (WEIGHT, LAG, TREND))
    level = usual + weight * (recent.rate - usual) + lag * (usual - recent.usual)
    return np.asarray(np.maximum(level + trend * (recent.rate - recent.slow), 0.0))


def bounds(mean: Floats, control_seconds: float, numbers: Floats) -> Forecast:
    """A forecast with its interval: Poisson counts of one control interval whose rate varies; ``numbers`` as above."""
    sd = np.sqrt(mean / control_seconds + numbers[VARIATION] * mean**2)
    return Forecast(mean, np.maximum(mean + numbers[LOW] * sd, 0.0), mean + numbers[HIGH] * sd)


def forecast(model: ServiceModel, user: int, at: float, control_seconds: float) -> Forecast:
    """The rate in the control interval that begins at ``at``, where nothing is known of late.

    Args:
        model: of the workload.
        user: its position.
        at: seconds since some 0:00 UTC.
        control_seconds: of the interval.
    """
    numbers = model.forecast[user, 1] if len(model.forecast) else UNKNOWN
    return bounds(numbers[TYPICAL] * usual_rate(model.rate[user], at), control_seconds, numbers)


# What a domain model expects of a batch, and of arrivals at a time of day.


LEVEL = 0.9
_TEXT: dict[str, Any] = {"type": "string", "maxLength": 63}
PARAMETERS = (
    Parameter("variant", "Name of a variant.", _TEXT, "resnet18", required=True),
    Parameter("batch", "One of the workload's batch sizes.", {"type": "integer", "minimum": 1}, 4, required=True),
    Parameter("server", "Name of a server class; optional if there is only one.", _TEXT, "cpu"),
    Parameter(
        "at",
        "Time of day, in seconds since 00:00 UTC: adds expected arrivals.",
        {"type": "number", "minimum": 0},
        43_200,
    ),
)


class Interval(BaseModel):
    """A prediction: mean, and the bounds that hold with probability `level`."""

    mean: float
    low: float
    high: float
    level: float


class BatchPrediction(BaseModel):
    """Predictions for a batch, and for arrivals."""

    workload: str
    model: int = Field(description="Version of the model used.")
    variant: str
    batch: int
    server: str
    seconds: Interval = Field(description="From its start to its end.")
    measured: bool = Field(description="Whether the variant was measured on this server class.")
    arrivals: dict[str, Interval] | None = Field(
        default=None, description="Requests per second by user, in the control interval at `at`; null if not given."
    )


def predict(layout: Layout, model: ServiceModel, query: Query) -> dict[str, Any]:
    """What a batch is expected to take: the fields of ``BatchPrediction``.

    Raises:
        InvalidInput: unknown or missing names, a batch size that the workload hasn't, a time before 0.
    """
    variant = _position(query, "variant", layout.variants)
    server = _position(query, "server", layout.servers)
    batch = _batch(query, layout)
    place = server, variant, layout.spec.batches.index(batch)
    low, high = model.interval()
    return {
        "variant": layout.variants[variant],
        "batch": batch,
        "server": layout.servers[server],
        "seconds": _interval(model.seconds()[place], low[place], high[place]),
        "measured": bool(model.measured[server, variant]),
        "arrivals": _arrivals(layout, model, query["at"]) if "at" in query else None,
    }


def _arrivals(layout: Layout, model: ServiceModel, values: Sequence[str]) -> Mapping[str, Interval]:
    at = _seconds(values)
    told = [forecast(model, user, at, layout.spec.control_seconds) for user in range(len(layout.users))]
    return {name: _interval(*one) for name, one in zip(layout.users, told, strict=True)}


def _interval(mean: Any, low: Any, high: Any) -> Interval:
    return Interval(mean=float(mean), low=float(low), high=float(high), level=LEVEL)


def _position(query: Query, name: str, known: Sequence[str]) -> int:
    values = query.get(name, () if len(known) > 1 else known)
    if len(values) != 1 or values[0] not in known:
        raise invalid(f"/query/{name}", f"must be given once, one of {', '.join(known)}", [*values] or None)
    return known.index(values[0])


def _batch(query: Query, layout: Layout) -> int:
    sizes = [str(size) for size in layout.spec.batches]
    values = query.get("batch", ())
    if len(values) != 1 or values[0] not in sizes:
        raise invalid("/query/batch", f"must be given once, one of {', '.join(sizes)}", [*values] or None)
    return int(values[0])


def _seconds(values: Sequence[str]) -> float:
    try:
        at = float(values[0]) if len(values) == 1 else np.nan
    except ValueError:
        at = np.nan
    if not 0 <= at <= LATEST_MOMENT:
        accepted = f"must be given once, as seconds since 0:00 UTC, 0 to {LATEST_MOMENT:g}"
        raise invalid("/query/at", accepted, [*values])
    return at
