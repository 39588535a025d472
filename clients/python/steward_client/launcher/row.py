"""Record of one iteration of a launched command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROFILE = "profile"  # not decided but moved to, for the sake of measuring
HELD = "held"  # the last decision, while the service is away


@dataclass(frozen=True)
class Row:
    """One iteration: index from 0, duration in seconds, allocation, metrics and features by name.

    ``source`` is what decided the allocation (``profile``: measuring, ``held``: the last decision while the service was
    unreachable); ``low`` and ``high`` bound the predicted seconds, None: no prediction.
    """

    index: int
    seconds: float
    allocation: Mapping[str, float]
    metrics: Mapping[str, float]
    features: Mapping[str, float]
    source: str
    low: float | None = None
    high: float | None = None
