"""How many drifts were noticed in this process: plain numbers, which the registry asks for when it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app.drift.detector import Notice

LABELS = ("workload", "stream", "direction")


class DriftMeter(Collector):
    """Counts notices by workload, stream and direction; on one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def count(self, workload: str, notice: Notice) -> None:
        """Count one notice, which is on disk."""
        self._counts[workload, notice.stream, notice.direction] += 1

    def collect(self) -> Iterable[Metric]:
        """What was counted so far."""
        drifts = CounterMetricFamily("steward_drifts", "Drifts noticed.", labels=LABELS)
        for labels, number in list(self._counts.items()):
            drifts.add_metric(labels, number)
        return [drifts]
