"""Forecasts of each user's requests, ten minutes to a day ahead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.forecasting.forecaster import Forecaster, written
from app.kinds.forecasting.series import Series
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.content import Content
from workers.estimators.forecasting.back_test import FEWEST, forecaster
from workers.kinds.inference.estimation.counts import counted

SECONDS = 600.0
HORIZONS = (1, 6, 36, 144)


def forecasts(
    layout: Layout, contents: Sequence[Content], levels: Sequence[float], seed: int
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """What the model keeps of forecasters, and the report of each by user, from the longest log.

    Args:
        levels: what has become of each user's requests since, as factors.
    """
    counts = counted([content.requests for content in contents], len(layout.users), SECONDS)
    longest = max(counts, key=lambda one: one.counts.shape[1], default=None)
    if longest is None or longest.counts.shape[1] < FEWEST:
        return np.zeros(0, np.uint8), {}
    found: list[Forecaster] = []
    told: dict[str, Any] = {}
    for name, own, level in zip(layout.users, longest.counts, levels, strict=True):
        series = Series(level * own, longest.start, SECONDS)
        made, told[name] = forecaster(name, series, HORIZONS, seed)
        found.append(made)
    return written(found), told
