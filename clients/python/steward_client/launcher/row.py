"""An iteration as it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

PROFILE = "profile"  # not decided but moved to, for the sake of measuring
HELD = "held"  # the last decision, while the service is away


@dataclass(frozen=True)
class Row:
    """What an iteration had and took, who had decided that, and what was predicted for it."""

    index: int
    seconds: float
    allocation: Mapping[str, float]
    metrics: Mapping[str, float]
    features: Mapping[str, float]
    source: str
    low: float | None = None
    high: float | None = None
