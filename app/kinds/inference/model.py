"""The domain model of kind `inference`, its forecasts, and the predictions it answers over the API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field

from app.charts.text import exact
from app.kinds.contract.engine import Query
from app.kinds.contract.inputs import LATEST_MOMENT, IncompatibleModel, invalid
from app.kinds.contract.kind import Parameter
from app.kinds.inference.layout import Layout
from app.kinds.tensors import read_tensors, write_tensors

Floats = NDArray[np.float64]
FORMAT = "inference-2"
DAY_SECONDS = 86_400.0
LASTING = np.array([0.1, 1.0, 6.0, 60.0])
"""Durations, in control intervals, over which the parts of a rate's variation persist."""
NORMAL_90 = 1.6448536269514722  # standard normal quantile at 0.95


@dataclass(frozen=True, eq=False)
class ServiceModel:
    """Domain model: M ensemble members, C server classes, V variants, K batch sizes, U users, P parts of a day.

    Attributes:
        log_seconds: natural logarithm of the median seconds per batch, [M, C, V, K].
        spread: standard deviation of the natural logarithm of one batch's seconds, [V].
        rate: requests per second by part of the day from 0:00 UTC, [U, P].
        variation: squared coefficient of variation of the rate between control intervals, [U].
        measured: whether a variant was measured on a class, at any batch size, [C, V].
        forecast: coefficients of the next control interval's forecast, with recent counts and without, [U, 2, 17], by
            the columns ``WEIGHT`` to ``CAME``; empty: unknown.
        parts: squared coefficients of variation of the rate by duration (``LASTING``), [U, 4]; empty: ``variation``
            only.
        forecasts: serialised forecasters by user (``app.kinds.forecasting.answer.serialise``); empty: none.
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
        """Return the mean seconds per batch by class, variant and size, [C, V, K], over members and spread."""
        median: Floats = np.exp(self.log_seconds).mean(axis=0)
        factor = np.exp(self.spread**2 / 2)
        return median * factor[None, :, None]

    def varying(self) -> Floats:
        """Return the rate's squared coefficients of variation by user and duration (``LASTING``), [U, 4]; without
        ``parts``, ``variation`` for one control interval."""
        if len(self.parts):
            return self.parts
        return self.variation[:, None] * (LASTING == 1.0)

    def interval(self) -> tuple[Floats, Floats]:
        """Return low and high of the 90 % interval of one batch's seconds, [C, V, K] each, by members and spread."""
        centre, apart = self.log_seconds.mean(axis=0), self.log_seconds.std(axis=0)
        half = NORMAL_90 * np.sqrt(apart**2 + self.spread[None, :, None] ** 2)
        return np.exp(centre - half), np.exp(centre + half)

    def check(self, layout: Layout) -> None:
        """Check that the model fits a layout.

        Raises:
            IncompatibleModel: the model has other numbers of classes, variants, batch sizes or users.
        """
        users, variants, batches = layout.shape
        shape = self.log_seconds.shape[1:], self.rate.shape[0]
        expected = (len(layout.servers), variants, batches), users
        if shape != expected:
            raise IncompatibleModel(f"the model is of (classes, variants, batches), users {shape}, not {expected}")

    def to_bytes(self) -> bytes:
        """Serialise as safetensors; equal models give equal bytes."""
        return write_tensors({name: np.asarray(value) for name, value in vars(self).items()}, {"format": FORMAT})

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Deserialise a model from bytes that ``to_bytes`` returned.

        Raises:
            IncompatibleModel: ``data`` is no such model, or has another format version.
        """
        try:
            header, arrays = read_tensors(data)
            version = header.get("format")
            if version != FORMAT:
                raise IncompatibleModel(f"the model has format {version}, this version reads {FORMAT}")
            return cls(**arrays)
        except (ValueError, TypeError, KeyError) as error:
            raise IncompatibleModel(f"no domain model of kind inference: {error}") from error


# Forecast of the request rate: the daily profile, corrected by recent deviations from it.


HOUR = 3600.0
LEAST_RATE = 1e-9
MOST_VARIATION = 2.0  # bound for gamma variables represented by eighths
WEIGHT, WINDOW, VARIATION, LOW, HIGH, TYPICAL, LAG, TREND, SLOW = range(9)
"""Columns of ``ServiceModel.forecast``: fraction of a recent deviation that persists; seconds of smoothing of recent
rates; squared coefficient of variation about the forecast; quantiles of the error over its standard deviation; median
over mean rate; weights of the profile's change and of the recent change; longer seconds of smoothing for the latter.
Columns ``CAME``: means of the eighths of actual over forecast counts, ascending."""
CAME = slice(9, 17)
EIGHTHS = np.array([-1.5341, -0.8871, -0.4888, -0.1573, 0.1573, 0.4888, 0.8871, 1.5341])
"""Standard normal variable at the middles of the eighths of its distribution."""


def spread(variation: ArrayLike) -> Floats:
    """Return the quantiles of a gamma distribution of mean 1 at the middles of its eighths, [..., 8], scaled to mean 1,
    by Wilson and Hilferty (1931).

    Args:
        variation: squared coefficient of variation, [...]; above ``MOST_VARIATION`` that is used.
    """
    ninth = np.minimum(np.asarray(variation, np.float64), MOST_VARIATION)[..., None] / 9
    values = np.maximum(1 - ninth + EIGHTHS * np.sqrt(ninth), 0.0) ** 3
    return np.asarray(values / values.mean(axis=-1, keepdims=True))


UNKNOWN = np.array([0.0, HOUR, 1.0, -NORMAL_90, NORMAL_90, 1.0, 0.0, 0.0, HOUR, *spread(1.0)])
"""Coefficients of forecasts (columns ``WEIGHT`` to ``CAME``) if too little is known to fit any, [17]."""


class Forecast(NamedTuple):
    """Requests per second: ``mean``, and bounds of the 90 % interval of a control interval's rate; one shape."""

    mean: Floats
    low: Floats
    high: Floats


def usual_rate(rate: Floats, at: ArrayLike) -> Floats:
    """Return the requests per second at times ``at`` by a daily profile, linear between the middles of its P parts.

    Args:
        rate: requests per second by part of the day, [P].
        at: seconds since 0:00 UTC of any day, of any shape, which the result has.
    """
    place = np.asarray(at, np.float64) % DAY_SECONDS / (DAY_SECONDS / len(rate)) - 0.5
    part = np.floor(place).astype(np.int64)
    share = place - part
    return (1 - share) * rate[part % len(rate)] + share * rate[(part + 1) % len(rate)]


class Recent(NamedTuple):
    """Requests per second at the origin of a forecast: recent ``rate``, smoothed; ``usual`` rate of the daily profile;
    ``slow``, smoothed for longer. Arrays of shapes that broadcast."""

    rate: Floats
    usual: Floats
    slow: Floats


def correct_rates(usual: Floats, recent: Recent, numbers: Floats) -> Floats:
    """Return the profile's rates ``usual`` plus a share of the recent deviation from the profile, of the profile's
    change since, and of the recent change: requests per second, at least 0.

    ``numbers``: forecast coefficients, [..., 17], of which ``WEIGHT``, ``LAG`` and ``TREND`` are the three shares."""
    weight, lag, trend = (numbers[..., column] for column in (WEIGHT, LAG, TREND))
    level = usual + weight * (recent.rate - usual) + lag * (usual - recent.usual)
    return np.asarray(np.maximum(level + trend * (recent.rate - recent.slow), 0.0))


def bounds(mean: Floats, control_seconds: float, numbers: Floats) -> Forecast:
    """Return a ``mean`` rate (requests per second) with the 90 % interval of a control interval's rate, which has
    Poisson noise and the variation of the forecast.

    ``numbers``: forecast coefficients, [17]."""
    sd = np.sqrt(mean / control_seconds + numbers[VARIATION] * mean**2)
    return Forecast(mean, np.maximum(mean + numbers[LOW] * sd, 0.0), mean + numbers[HIGH] * sd)


def forecast(model: ServiceModel, user: int, at: float, control_seconds: float) -> Forecast:
    """Forecast a user's requests per second in the control interval that begins at ``at``, without recent counts.

    Args:
        model: domain model of the workload.
        user: position of the user.
        at: seconds since 0:00 UTC of any day.
        control_seconds: length of the interval in seconds.
    """
    numbers = model.forecast[user, 1] if len(model.forecast) else UNKNOWN
    return bounds(numbers[TYPICAL] * usual_rate(model.rate[user], at), control_seconds, numbers)


# Predictions over the API: seconds of a batch, and arrivals at a time of day.


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
    """Predict a batch's seconds and, for a given time, requests per second; returns fields of ``BatchPrediction``.

    Raises:
        InvalidInput: a name is unknown or missing, the batch size isn't in the spec, or the time is invalid.
    """
    variant = _position(query, "variant", layout.variants)
    server = _position(query, "server", layout.servers)
    sizes = [str(size) for size in layout.spec.batches]
    values = query.get("batch", ())
    if len(values) != 1 or values[0] not in sizes:
        raise invalid("/query/batch", f"must be given once, one of {', '.join(sizes)}", [*values] or None)
    batch = int(values[0])
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
    try:
        at = float(values[0]) if len(values) == 1 else np.nan
    except ValueError:
        at = np.nan
    if not 0 <= at <= LATEST_MOMENT:
        accepted = f"must be given once, as seconds since 0:00 UTC, 0 to {exact(LATEST_MOMENT)}"
        raise invalid("/query/at", accepted, [*values])
    forecasts = [forecast(model, user, at, layout.spec.control_seconds) for user in range(len(layout.users))]
    return {name: _interval(*one) for name, one in zip(layout.users, forecasts, strict=True)}


def _interval(mean: Any, low: Any, high: Any) -> Interval:
    return Interval(mean=float(mean), low=float(low), high=float(high), level=LEVEL)


def _position(query: Query, name: str, known: Sequence[str]) -> int:
    values = query.get(name, () if len(known) > 1 else known)
    if len(values) != 1 or values[0] not in known:
        raise invalid(f"/query/{name}", f"must be given once, one of {', '.join(known)}", [*values] or None)
    return known.index(values[0])
