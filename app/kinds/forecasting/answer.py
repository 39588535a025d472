"""What a service answers of forecasts: rows by series and horizon, from the last that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from pydantic import BaseModel, Field

from app.kinds.forecasting.forecaster import LEVEL, Forecaster

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
    """The whole answer."""
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
