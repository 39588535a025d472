"""Forecasters of several series at once, as a domain model keeps them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.forecasting.forecaster import written
from app.kinds.forecasting.series import Floats, Series
from workers.estimators.forecasting.back_test import FEWEST, forecaster
from workers.estimators.forecasting.families import ALL, QUICK

SECONDS = 600.0
"""Of an interval, where a kind has no reason to count by others."""
HORIZONS = (1, 6, 36, 144)
MOST_INTERVALS = 100_000
MOST_TRAINED = 4


def counted(times: Floats, classes: NDArray[Any], names: Sequence[str]) -> dict[str, Series]:
    """What came by class, in whole intervals from the first to the last; none where these are too few.

    Args:
        times: when each came, ascending, in seconds since 1970 or since a start of its own, [n].
        classes: positions in ``names``, [n].
        names: of the series.
    """
    first, last = (int(times[end] // SECONDS) for end in (0, -1)) if len(times) else (0, 0)
    first = max(first, last - MOST_INTERVALS)
    if last - first < FEWEST:
        return {}
    edges = SECONDS * np.arange(first, last + 1)  # the last interval, in which the log ends, is left out
    each = [np.histogram(times[classes == place], edges)[0] for place in range(len(names))]
    return {name: Series(own.astype(np.float64), edges[0], SECONDS) for name, own in zip(names, each, strict=True)}


def forecasters(series: Mapping[str, Series], seed: int) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """What a model keeps of them, and the report of each by name; networks and trees are for the busiest alone."""
    busiest = sorted(series, key=lambda name: -float(series[name].counts.sum()))[:MOST_TRAINED]
    found = [forecaster(name, one, HORIZONS, seed, ALL if name in busiest else QUICK) for name, one in series.items()]
    told = {name: report for name, (_, report) in zip(series, found, strict=True)}
    return (written([made for made, _ in found]) if found else np.zeros(0, np.uint8)), told
