"""Forecasts of each user's requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kinds.contract.rows import MICRO
from app.kinds.inference.layout import Layout
from app.kinds.inference.samples.content import Content, Requests
from workers.estimators.forecasting.several import SECONDS, counted, forecasters
from workers.kinds.inference.estimation.counts import parts, span


def forecasts(
    layout: Layout, contents: Sequence[Content], levels: NDArray[np.float64], seed: int
) -> tuple[NDArray[np.uint8], dict[str, Any]]:
    """What the model keeps of forecasters, and the report of each by user, from the longest part of a log.

    Args:
        layout: of the workload.
        contents: of executions.
        levels: what has become of each user's requests since, as factors, [U].
        seed: of networks and trees.
    """
    log = max(_logs(contents), key=span)
    series = counted(log.time / MICRO, log.user, layout.users)
    shifted = [one._replace(counts=level * one.counts) for one, level in zip(series.values(), levels, strict=False)]
    return forecasters(dict(zip(series, shifted, strict=True)), seed)


def longest(contents: Sequence[Content]) -> float:
    """Seconds of the log that forecasts are fitted to."""
    return max(map(span, _logs(contents)))


def _logs(contents: Sequence[Content]) -> list[Requests]:
    """Parts of logs; of one without any requests itself."""
    return [part for content in contents for part in (parts(content.requests, SECONDS) or [content.requests])]
