"""A fitted forecaster of one series: which family answers at each horizon, and how far it has erred."""

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
from app.kinds.forecasting.series import Floats, Integers, Series, unscaled

# A fitted forecaster of one series: which family answers at each horizon, and how far it has erred.


LEVEL = 0.9
Forward = Family | Stacked
"""What a family gives: ``medians(series, origins)`` tells, in scaled terms, what comes each of its ``horizons`` after
each origin, [m, H]; an origin [m] is the position of the last interval that is known."""


class Expected(NamedTuple):
    """What is expected of intervals: counts, of any one shape.

    Attributes:
        median: the counts that err least absolutely.
        mean: of what may come; bursts lift it.
        low, high: bounds of an interval that holds 90 % of what comes.
    """

    median: Floats
    mean: Floats
    low: Floats
    high: Floats


class Forecaster(msgspec.Struct, frozen=True, eq=False):
    """Of one series.

    Attributes:
        name: of the series.
        horizons: in intervals.
        chosen: position in ``families`` of the one that answers, by horizon.
        names: of the families that answer somewhere.
        families: these.
        errors: by horizon, on origins that no fit had seen: what is added to medians in scaled terms to reach the two
            bounds, what medians are multiplied with to be means, and what is then added to these, [H, 4].
        history: what it was fitted to, or its end.
    """

    name: str
    horizons: tuple[int, ...]
    chosen: tuple[int, ...]
    names: tuple[str, ...]
    families: tuple[Forward, ...]
    errors: Floats
    history: Series

    def expected(self, series: Series, origins: Integers) -> Expected:
        """What comes after origins, [m, H]."""
        series = series._replace(unit=self.history.unit)
        told = [family.medians(series, origins) for family in self.families]
        columns = [told[family][:, place] for place, family in enumerate(self.chosen)]
        return bounded(np.stack(columns, axis=1), self.errors, series.unit)

    def ahead(self, since: ArrayLike = ()) -> Expected:
        """What comes after its history, and what was counted since in intervals that follow it, [H]."""
        series = self.history.then(since)
        return Expected(*(part[0] for part in self.expected(series, np.array([len(series.counts) - 1]))))


Written = tuple[Literal["forecasts-1"], tuple[Forecaster, ...]]


def bounded(medians: Floats, errors: Floats, unit: float) -> Expected:
    """Medians in scaled terms [..., H] with all that errors [H, 4] say of them, see ``Forecaster``."""
    told = unscaled(medians, unit)
    low, high = unscaled(medians + errors[:, 0], unit), unscaled(medians + errors[:, 1], unit)
    mean = errors[:, 2] * told + errors[:, 3]
    return Expected(told, mean, np.minimum(low, told), np.maximum(high, told))


def written(forecasters: Sequence[Forecaster]) -> NDArray[np.uint8]:
    """As bytes, to stand beside a model's other arrays."""
    return np.frombuffer(msgspec.msgpack.encode(("forecasts-1", tuple(forecasters)), enc_hook=_encoded), np.uint8)


def read(data: NDArray[np.uint8]) -> tuple[Forecaster, ...]:
    """What ``written`` wrote.

    Raises:
        IncompatibleModel: these are no forecasters, or of another version.
    """
    try:
        return msgspec.msgpack.decode(data.tobytes(), type=Written, dec_hook=_decoded)[1]
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise IncompatibleModel(f"no forecasts: {error}") from error


def _encoded(array: Any) -> tuple[str, tuple[int, ...], bytes]:
    return array.dtype.str, array.shape, array.tobytes()


def _decoded(_: type, value: Any) -> NDArray[Any]:
    dtype, shape, data = value
    return np.frombuffer(data, dtype).reshape(shape)


# What a service answers of forecasts: rows by series and horizon, from the last that is known.


RECENT, HOUR = 200, 3600.0
LEAST_SECONDS = 4 * HOUR
"""That a log lasts from which something can be forecast."""


class ForecastRow(BaseModel):
    """Forecast for one interval of a series."""

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
    """Count in one interval of a series."""

    series: str
    time: datetime
    count: float


class Forecast(BaseModel):
    """Expected counts by interval."""

    workload: str
    model: int = Field(description="Version of the model used.")
    level: float = Field(default=LEVEL, description="Probability that a count lies between `low` and `high`.")
    recent: list[Count] = Field(description=f"The latest known counts, at most {RECENT} intervals of each series.")
    rows: list[ForecastRow] = Field(description="Ordered by series, then by horizon.")


Observed = Mapping[str, Mapping[float, float]]
"""Counts by series and by when their intervals begin, in seconds since 1970."""


def forecast_of(workload: str, version: int, forecasters: Sequence[Forecaster], observed: Observed) -> Forecast:
    """The forecasts of all series, as the service answers them."""
    goes_on = [(one, following(one, observed.get(one.name, {}))) for one in forecasters]
    recent = [count for one, since in goes_on for count in _recent(one, since)]
    return Forecast(
        workload=workload, model=version, recent=recent, rows=[row for each in goes_on for row in _rows(*each)]
    )


def _recent(forecaster: Forecaster, since: Sequence[float]) -> Iterator[Count]:
    known = forecaster.history.then(since)
    first = max(len(known.counts) - RECENT, 0)
    for time, count in zip(known.times[first:].tolist(), known.counts[first:].tolist(), strict=True):
        yield Count(series=forecaster.name, time=datetime.fromtimestamp(time, UTC), count=count)


def _rows(forecaster: Forecaster, since: Sequence[float]) -> Iterator[ForecastRow]:
    told, seconds = forecaster.ahead(since), forecaster.history.seconds
    last = forecaster.history.end + seconds * len(since)
    for place, ahead in enumerate(forecaster.horizons):
        yield ForecastRow(
            series=forecaster.name,
            time=datetime.fromtimestamp(last + (ahead - 1) * seconds, UTC),
            horizon_seconds=ahead * seconds,
            interval_seconds=seconds,
            family=forecaster.names[forecaster.chosen[place]],
            **{name: float(values[place]) for name, values in told._asdict().items()},
        )


class Coming(NamedTuple):
    """What is expected of a series in the hour after what is known of it.

    Attributes:
        known_until: seconds since 1970.
        mean: of the counts that may come.
    """

    known_until: float
    mean: float


def next_hour(forecasters: Sequence[Forecaster], observed: Observed) -> dict[str, Coming]:
    """Of the series that were counted since their forecasters were fitted; a forecast of long ago tells nothing."""
    found = {}
    for one in forecasters:
        since = following(one, observed.get(one.name, {}))
        if since:
            intervals = np.arange(1, max(round(HOUR / one.history.seconds), 1) + 1)
            expected = np.interp(intervals, one.horizons, one.ahead(since).mean)
            count = float(expected.mean() * HOUR / one.history.seconds)
            found[one.name] = Coming(one.history.end + one.history.seconds * len(since), count)
    return found


def following(forecaster: Forecaster, counts: Mapping[float, float]) -> list[float]:
    """Counts of the intervals that follow a forecaster's history, until one is not known."""
    at, found = forecaster.history.end, []
    while at in counts:
        found.append(counts[at])
        at += forecaster.history.seconds
    return found
