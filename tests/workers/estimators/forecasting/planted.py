"""Series whose course is known."""

from __future__ import annotations

import numpy as np

from app.kinds.forecasting.series import DAY, Series

HOUR = 3_600.0


def daily(days: int, seed: int = 0, level: float = 30.0) -> Series:
    """Poisson counts by the hour, whose rate follows the time of day."""
    at = HOUR * np.arange(24 * days)
    rate = level * np.exp(np.sin(2 * np.pi * at / DAY))
    return Series(np.random.default_rng(seed).poisson(rate).astype(np.float64), 0.0, HOUR)


def wandering(count: int, seed: int = 0) -> Series:
    """Counts whose logarithm goes on by a random walk: what came last tells all."""
    steps = np.random.default_rng(seed).normal(0.0, 0.1, count)
    return Series(np.round(np.exp(6 + np.cumsum(steps - steps.mean()))), 0.0, HOUR)
