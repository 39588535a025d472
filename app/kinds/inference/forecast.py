"""How many requests will come: the usual rate at a time of day, corrected by how the last minutes differed from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from app.kinds.inference.model import DAY_SECONDS, NORMAL_90, Floats, ServiceModel

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
