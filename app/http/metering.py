"""Requests and their seconds by route, and errors logged: plain numbers, until the registry asks for them."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
LABELS = ("method", "route", "status")


class _Seconds:
    """How many requests took how long; ``buckets[i]`` of them up to ``BUCKETS[i]``, the last ones longer."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)

    def cumulative(self) -> Iterator[tuple[str, float]]:
        """Counts of all requests up to each bound, as Prometheus has them."""
        bounds = (*map(str, BUCKETS), "+Inf")
        return zip(bounds, accumulate(self.buckets), strict=True)


class RequestMeter(Collector):
    """Counts requests and their seconds by method, route and status; on one event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[tuple[str, str], _Seconds] = {}
        registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method, route, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        found = self._seconds.get(key[:2])
        if found is None:
            found = self._seconds[key[:2]] = _Seconds()
        found.sum += seconds
        found.buckets[bisect_left(BUCKETS, seconds)] += 1

    def collect(self) -> Iterable[Metric]:
        """What was counted so far."""
        requests = CounterMetricFamily("steward_requests", "Requests answered.", labels=LABELS)
        for (method, route, status), number in list(self._counts.items()):
            requests.add_metric((method, route, str(status)), number)
        taken = HistogramMetricFamily("steward_request_seconds", "Seconds to answer.", labels=LABELS[:2])
        for labels, seconds in list(self._seconds.items()):
            taken.add_metric(labels, list(seconds.cumulative()), seconds.sum)
        return [requests, taken]


class LogMeter(logging.Handler, Collector):
    """Counts warnings and errors of this process; nothing else tells of a policy that fails and is answered for."""

    LEVELS = ("warning", "error", "critical")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._counts = Counter[str](dict.fromkeys(self.LEVELS, 0))

    def emit(self, record: logging.LogRecord) -> None:
        """Count one."""
        self._counts[record.levelname.lower()] += 1

    def collect(self) -> Iterable[Metric]:
        """What was counted so far."""
        family = CounterMetricFamily("steward_log_records", "Warnings and errors logged.", labels=["level"])
        for level, number in self._counts.items():
            family.add_metric([level], number)
        return [family]
