"""Record of one iteration of a launched command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PROFILE = "profile"  # not decided but moved to, for the sake of measuring
HELD = "held"  # the last decision, while the service is away


@dataclass(frozen=True)
class Row:
    """One iteration: index from 0, duration in seconds, allocation, metrics and features by name.

    ``source`` is what decided the allocation (``profile``: measuring, ``held``: the last decision while the service was
    unreachable); ``low`` and ``high`` bound the predicted seconds, None: no prediction. ``segments`` are its parts, as
    in a report, if the allocation changed before its end; ``allocation`` is then the last one. ``change_seconds`` of
    its seconds the command stood still, or did again what was lost, because it was started again.
    """

    index: int
    seconds: float
    allocation: Mapping[str, float]
    metrics: Mapping[str, float]
    features: Mapping[str, float]
    source: str
    low: float | None = None
    high: float | None = None
    segments: Sequence[Mapping[str, Any]] = ()
    change_seconds: float = 0.0

    def spent(self, resource: str) -> float:
        """Amount of a resource times seconds."""
        parts = self.segments or [{"allocation": self.allocation, "seconds": self.seconds}]
        return float(sum(part["allocation"][resource] * part["seconds"] for part in parts))

    @property
    def report(self) -> dict[str, Any]:
        """Its allocation, and its segments and change if it has any, as in a report."""
        report: dict[str, Any] = {"allocation": self.allocation}
        if self.segments:
            report["segments"] = list(self.segments)
        if self.change_seconds:
            report["change_seconds"] = self.change_seconds
        return report


SOURCES = {"heuristic": "built-in policy", "guard": "safety check"}


def source_in_words(source: str) -> str:
    """Name of the maker of a decision, as on pages: “built-in policy”, “safety check”, “agent”."""
    return SOURCES.get(source, source)
