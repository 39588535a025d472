"""Fitted forecasters of series: families by horizon, prediction intervals, and the answer over the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, Field

from app.kinds.contract.inputs import IncompatibleModel
from app.kinds.forecasting.families import Family, Stacked
from app.kinds.forecasting.series import Floats, Integers, Series, unscale

# A fitted forecaster: the family used at each horizon, and its errors.


LEVEL = 0.9
Forward = Family | Stacked
"""A fitted family: ``medians(series, origins)`` returns log-scale medians [m, H] at its H ``horizons`` after each of m
origins, positions of the last known interval."""


class ExpectedCounts(NamedTuple):
    """Forecast counts per interval of a series, arrays of equal shape.

    Attributes:
        median: forecast of least absolute error.
        mean: expected count, larger than the median if bursts occur.
        low, high: bounds of the 90 % interval.
    """

    median: Floats
    mean: Floats
    low: Floats
    high: Floats


class Forecaster(msgspec.Struct, frozen=True, eq=False):
    """Fitted forecaster of one series, for H horizons.

    Attributes:
        name: name of the series.
        horizons: the H horizons, in intervals after the last known one.
        chosen: position in ``families`` of the one used at each horizon, [H].
        names: names of the families.
        families: the fitted families.
        errors: calibration on origins unseen by the fits, [H, 4]: additions to log-scale medians for the two bounds,
            then factor and addition that turn medians into means.
        history: series it was fitted to, or its end.
    """

    name: str
    horizons: tuple[int, ...]
    chosen: tuple[int, ...]
    names: tuple[str, ...]
    families: tuple[Forward, ...]
    errors: Floats
    history: Series

    def expected(self, series: Series, origins: Integers) -> ExpectedCounts:
        """Forecast counts per interval at H horizons after each of m ``origins`` (positions in ``series``), [m, H]."""
        series = series._replace(unit=self.history.unit)
        forecasts = [family.medians(series, origins) for family in self.families]
        columns = [forecasts[family][:, place] for place, family in enumerate(self.chosen)]
        return forecast_bounds(np.stack(columns, axis=1), self.errors, series.unit)

    def ahead(self, since: ArrayLike = ()) -> ExpectedCounts:
        """Forecast counts per interval, [H] each, at H horizons after the history, extended by the counts ``since``."""
        series = self.history.then(since)
        return ExpectedCounts(*(part[0] for part in self.expected(series, np.array([len(series.counts) - 1]))))


Written = tuple[Literal["forecasts-1"], tuple[Forecaster, ...]]


def forecast_bounds(medians: Floats, errors: Floats, unit: float) -> ExpectedCounts:
    """Return forecast counts, [..., H] each, from log-scale ``medians`` [..., H] and ``errors`` [H, 4] of a
    ``Forecaster``.

    ``unit`` is the small count that sets the log scale, ln(1 + count / unit)."""
    forecast_values = unscale(medians, unit)
    low, high = unscale(medians + errors[:, 0], unit), unscale(medians + errors[:, 1], unit)
    mean = errors[:, 2] * forecast_values + errors[:, 3]
    return ExpectedCounts(forecast_values, mean, np.minimum(low, forecast_values), np.maximum(high, forecast_values))


def serialise(forecasters: Sequence[Forecaster]) -> NDArray[np.uint8]:
    """Serialise forecasters, for ``deserialise``, to an array of bytes that a model stores beside its other arrays."""
    return np.frombuffer(msgspec.msgpack.encode(("forecasts-1", tuple(forecasters)), enc_hook=_encode_array), np.uint8)


def deserialise(data: NDArray[np.uint8]) -> tuple[Forecaster, ...]:
    """Deserialise forecasters from bytes that ``serialise`` returned.

    Raises:
        IncompatibleModel: ``data`` isn't forecasters of this version.
    """
    try:
        return msgspec.msgpack.decode(data.tobytes(), type=Written, dec_hook=_decode_array)[1]
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise IncompatibleModel(f"no forecasts: {error}") from error


def _encode_array(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _decode_array(_: type, value: Any) -> NDArray[Any]:
    dtype, shape, data = value
    return np.frombuffer(data, dtype).reshape(shape)


# Forecasts over the API: rows by series and horizon, from the last known interval.


RECENT, HOUR = 200, 3600.0
LEAST_SECONDS = 4 * HOUR
"""Least duration of a log in seconds to fit a forecaster."""


class ForecastRow(BaseModel):
    """Forecast count of one interval of a series: mean, median and bounds of the interval of probability `level`."""

    series: str
    time: datetime = Field(description="Start of the interval.")
    horizon_seconds: float = Field(description="From the end of the known data to the end of the interval.")
    family: str = Field(description="Forecaster, as named in the model's report.")
    interval_seconds: float = Field(description="Length of the interval.")
    mean: float = Field(description="Mean of the forecast.")
    median: float = Field(description="Forecast with the least absolute error.")
    low: float
    high: float


class Count(BaseModel):
    """Number of events in one interval of a series, or the mean of a level such as GPUs in use."""

    series: str
    time: datetime
    count: float


class Forecast(BaseModel):
    """Forecast counts of a workload's series by interval, and the latest known ones."""

    workload: str
    model: int = Field(description="Version of the model used.")
    level: float = Field(default=LEVEL, description="Probability that a count lies between `low` and `high`.")
    recent: list[Count] = Field(description=f"The latest known counts, at most {RECENT} intervals of each series.")
    rows: list[ForecastRow] = Field(description="Ordered by series, then by horizon.")


Observed = Mapping[str, Mapping[float, float]]
"""Counts by series and by start of their interval, seconds since 1970."""


def forecast_of(workload: str, version: int, forecasters: Sequence[Forecaster], observed: Observed) -> Forecast:
    """Return the forecasts of all series for the API, from the end of each history continued by ``observed`` counts.

    ``version`` is that of the domain model."""
    goes_on = [(one, following(one, observed.get(one.name, {}))) for one in forecasters]
    recent = [count for one, since in goes_on for count in _recent_counts(one, since)]
    return Forecast(
        workload=workload, model=version, recent=recent, rows=[row for each in goes_on for row in _rows(*each)]
    )


def _recent_counts(forecaster: Forecaster, since: Sequence[float]) -> Iterator[Count]:
    known = forecaster.history.then(since)
    first = max(len(known.counts) - RECENT, 0)
    for time, count in zip(known.times[first:].tolist(), known.counts[first:].tolist(), strict=True):
        yield Count(series=forecaster.name, time=datetime.fromtimestamp(time, UTC), count=count)


def _rows(forecaster: Forecaster, since: Sequence[float]) -> Iterator[ForecastRow]:
    forecast_values, seconds = forecaster.ahead(since), forecaster.history.seconds
    last = forecaster.history.end + seconds * len(since)
    for place, ahead in enumerate(forecaster.horizons):
        yield ForecastRow(
            series=forecaster.name,
            time=datetime.fromtimestamp(last + (ahead - 1) * seconds, UTC),
            horizon_seconds=ahead * seconds,
            interval_seconds=seconds,
            family=forecaster.names[forecaster.chosen[place]],
            **{name: float(values[place]) for name, values in forecast_values._asdict().items()},
        )


class NextHour(NamedTuple):
    """Forecast for the hour after the last known interval of a series.

    Attributes:
        known_until: end of the last known interval, seconds since 1970.
        mean: expected count in the hour.
    """

    known_until: float
    mean: float


def next_hour(forecasters: Sequence[Forecaster], observed: Observed) -> dict[str, NextHour]:
    """Return the next hour's expected count, by name, of series with ``observed`` counts after their history."""
    next_hour = {}
    for one in forecasters:
        since = following(one, observed.get(one.name, {}))
        if since:
            intervals = np.arange(1, max(round(HOUR / one.history.seconds), 1) + 1)
            expected = np.interp(intervals, one.horizons, one.ahead(since).mean)
            count = float(expected.mean() * HOUR / one.history.seconds)
            next_hour[one.name] = NextHour(one.history.end + one.history.seconds * len(since), count)
    return next_hour


def following(forecaster: Forecaster, counts: Mapping[float, float]) -> list[float]:
    """Return the counts of the intervals after a forecaster's history, up to the first unknown one.

    ``counts``: by start of the interval, seconds since 1970."""
    at, results = forecaster.history.end, []
    while at in counts:
        results.append(counts[at])
        at += forecaster.history.seconds
    return results
