"""How many drifts were noticed in this process: plain numbers, which the registry asks for when it is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from app.drift.detector import Notice

LABELS = ("workload", "stream", "direction")


class DriftMeter:
    """Counts notices of each tenant by workload, stream and direction; on one event loop."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def count(self, tenant: str, workload: str, notice: Notice) -> None:
        """Count one notice, which is on disk."""
        self._counts[tenant, workload, notice.stream, notice.direction] += 1

    def of(self, tenant: str) -> CollectorRegistry:
        """What was counted so far of a tenant's workloads: their names are nobody else's business."""
        drifts = CounterMetricFamily("steward_drifts", "Drifts noticed.", labels=LABELS)
        for (whose, *labels), number in list(self._counts.items()):
            if whose == tenant:
                drifts.add_metric(labels, number)
        registry = CollectorRegistry()
        registry.register(_Counted(drifts))
        return registry


class _Counted(Collector):
    """A metric as it was counted."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterable[Metric]:
        """The metric."""
        return [self._metric]
