"""How many requests will come: the usual rate at a time of day, corrected by how the last minutes differed from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from app.kinds.inference.model import DAY_SECONDS, NORMAL_90, Floats, ServiceModel

HOUR = 3600.0
LEAST_RATE = 1e-9
WEIGHT, WINDOW, VARIATION, LOW, HIGH, TYPICAL = range(6)
"""Columns of ``ServiceModel.forecast``: what of a recent difference stays; the seconds over which recent rates are
smoothed; squared coefficient of variation about the forecast; quantiles of the error over its standard deviation; the
median rate over the mean, which bursts lift."""
UNKNOWN = np.array([0.0, HOUR, 1.0, -NORMAL_90, NORMAL_90, 1.0])
"""Such numbers where too little is known to fit any."""


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


def corrected(usual: Floats, usual_then: Floats, recent: Floats, weight: float) -> Floats:
    """Usual rates and a part ``weight`` of the recent difference from them; at least 0."""
    return np.maximum(usual + weight * (recent - usual_then), 0.0)


def bounds(mean: Floats, control_seconds: float, numbers: Floats) -> Forecast:
    """A forecast with its interval: Poisson counts of one control interval whose rate varies; ``numbers`` as above."""
    sd = np.sqrt(mean / control_seconds + numbers[VARIATION] * mean**2)
    return Forecast(mean, np.maximum(mean + numbers[LOW] * sd, 0.0), mean + numbers[HIGH] * sd)


def forecast(
    model: ServiceModel, user: int, at: float, control_seconds: float, recent: float | None = None, ahead: float = 0.0
) -> Forecast:
    """The rate in the control interval that begins at ``at``.

    Args:
        user: its position.
        at: seconds since some 0:00 UTC.
        recent: smoothed requests per second, ``ahead`` seconds before ``at``; None: not known.
        ahead: seconds; between a control interval and an hour what stays of the difference is interpolated.
    """
    near, far = model.forecast[user] if len(model.forecast) else (UNKNOWN, UNKNOWN)
    span = max(HOUR - control_seconds, LEAST_RATE)
    share = min(max(ahead - control_seconds, 0.0) / span, 1.0) if recent is not None else 1.0
    numbers = near + share * (far - near)
    usual = numbers[TYPICAL] * usual_rate(model.rate[user], at)
    if recent is None:
        return bounds(usual, control_seconds, numbers)
    then = numbers[TYPICAL] * usual_rate(model.rate[user], at - ahead)
    mean = corrected(usual, then, np.asarray(recent, np.float64), float(numbers[WEIGHT]))
    return bounds(mean, control_seconds, numbers)
