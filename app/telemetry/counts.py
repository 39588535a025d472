"""Counters whose values a tenant sees for itself only."""

from __future__ import annotations

import collections

from prometheus_client import CollectorRegistry, Counter, disable_created_metrics

disable_created_metrics()  # type: ignore[no-untyped-call]  # a registry is made for each response: its age says nothing


class TenantCounter:
    """A Prometheus counter with one set of values per tenant; bound to one event loop.

    Args:
        name: name of the metric, without the ending `_total`.
        description: what it counts.
        labels: names of its labels.
    """

    def __init__(self, name: str, description: str, labels: tuple[str, ...]) -> None:
        self._name, self._description, self._labels = name, description, labels
        self._counts = collections.Counter[tuple[str, ...]]()

    def count(self, tenant: str, *labels: str) -> None:
        """Count one event of a tenant; ``labels`` are the labels' values, which callers must not be able to invent."""
        self._counts[tenant, *labels] += 1

    def of(self, tenant: str) -> CollectorRegistry:
        """Registry with the values of one tenant only."""
        registry = CollectorRegistry()
        family = Counter(self._name, self._description, self._labels, registry=registry)
        for (whose, *labels), count in list(self._counts.items()):
            if whose == tenant:
                family.labels(*labels).inc(count)
        return registry


def request_counter() -> TenantCounter:
    """Counter of requested allocations that weren't granted at once, by workload and the state that they reached."""
    return TenantCounter("steward_requests", "Requests not granted at once.", ("workload", "state"))


def drift_counter() -> TenantCounter:
    """Counter of drift notices by workload, stream and direction."""
    return TenantCounter("steward_drifts", "Drifts noticed.", ("workload", "stream", "direction"))
