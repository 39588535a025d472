"""Requests and their seconds, by route."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)


class RequestMeter:
    """Counts requests and their seconds by method, route and status."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("method", "route", "status")
        self.requests = Counter("steward_requests", "Requests answered.", labels, registry=registry)
        self.seconds = Histogram(
            "steward_request_seconds", "Seconds to answer.", labels[:2], registry=registry, buckets=BUCKETS
        )
        self.children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        key = (method, route, status)
        children = self.children.get(key)
        if children is None:
            children = (self.requests.labels(method, route, str(status)), self.seconds.labels(method, route))
            self.children[key] = children
        children[0].inc()
        children[1].observe(seconds)
