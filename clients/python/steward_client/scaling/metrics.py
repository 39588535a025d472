"""Metrics of decided allocations, for Prometheus, and as Kubernetes' external metrics for a HorizontalPodAutoscaler.

There is one series per workload and resource, never one per run; at most ``MOST_SERIES`` in all.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from steward_client.errors import StewardError, Unreachable
from steward_client.kubernetes import quantity

from .amounts import Amounts, SubjectError
from .selector import SelectorError, selector

METRIC, LEFT_OUT = "steward_decided_allocation", "steward_decided_series_left_out"
GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
API = f"/apis/{GROUP}/{VERSION}"
MOST_SERIES = 1_000
Decided = Callable[[], Mapping[str, Amounts]]
"""Returns the amounts of each workload that has live runs; raises SubjectError, StewardError or Unreachable."""

logger = logging.getLogger("steward_client")


class Series(NamedTuple):
    """Decided amount of a resource, summed over a workload's live runs, in the resource's unit."""

    workload: str
    resource: str
    amount: float

    @property
    def labels(self) -> dict[str, str]:
        """The series' labels: ``workload`` and ``resource``."""
        return {"workload": self.workload, "resource": self.resource}


def _all(decided: Mapping[str, Amounts]) -> Iterator[Series]:
    """All series, ordered by workload and resource."""
    return (Series(name, *pair) for name, each in sorted(decided.items()) for pair in sorted(each.items()))


class DecidedCollector(Collector):
    """Prometheus collector of decided amounts by workload and resource, read from the service at each scrape."""

    def __init__(self, decided: Decided) -> None:
        self._decided = decided

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The two metric families without values; makes no call of the service."""
        help_ = "Amount of a resource that the workload's live runs have by their latest decisions."
        return [
            GaugeMetricFamily(METRIC, help_, labels=("workload", "resource")),
            GaugeMetricFamily(LEFT_OUT, f"Series beyond the first {MOST_SERIES:,}, which are left out."),
        ]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Return a gauge of the amounts decided last by workload and resource, and a gauge of the series left out.

        Amounts are in the resources' units, at most 1,000 series. Raises SubjectError, StewardError or
        Unreachable if the decisions can't be read.
        """
        family, left = self.describe()
        series = _all(self._decided())
        for one in islice(series, MOST_SERIES):
            family.add_metric((one.workload, one.resource), one.amount)
        left.add_metric((), sum(1 for _ in series))
        return [family, left]


class MetricsAdapter:
    """HTTP endpoints of the metrics: ``/metrics`` and Kubernetes' external metrics API.

    Args:
        decided: returns the latest amounts by workload; it may block.
    """

    def __init__(self, decided: Decided) -> None:
        self._decided, self._registry = decided, CollectorRegistry()
        self._registry.register(DecidedCollector(decided))

    def app(self) -> Starlette:
        """The ASGI application with all endpoints."""
        version = {"groupVersion": f"{GROUP}/{VERSION}", "version": VERSION}
        group = {"name": GROUP, "versions": [version], "preferredVersion": version}
        metric = {
            "name": METRIC,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
        resources = {"groupVersion": version["groupVersion"], "resources": [metric]}
        fields: dict[str, Mapping[str, object]] = {
            "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]},
            f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **group},
            API: {"kind": "APIResourceList", "apiVersion": "v1", **resources},
            "/healthz": {"status": "ok"},
        }
        routes = [Route(path, _always(document)) for path, document in fields.items()]
        values = Route(f"{API}/namespaces/{{namespace}}/{{metric}}", self._values)
        return Starlette(routes=[*routes, values, Route("/metrics", self._metrics)])

    def _metrics(self, _: Request) -> Response:
        try:
            return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)
        except (Unreachable, StewardError, SubjectError) as error:
            _log_refusal(error)
            return Response(f"{error}\n", 503, media_type="text/plain")

    def _values(self, request: Request) -> JSONResponse:
        """Decided amounts as Kubernetes' external metric, equal in all namespaces; errors have status 400, 404, 503."""
        name = request.path_params["metric"]
        if name != METRIC:
            return _status(404, "NotFound", f"metric {name!r} is not there; there is {METRIC}")
        try:
            fits = selector(request.query_params.get("labelSelector", ""))
            results = [one for one in _all(self._decided()) if fits(one.labels)]
        except SelectorError as error:
            return _status(400, "BadRequest", str(error))
        except (Unreachable, StewardError, SubjectError) as error:
            _log_refusal(error)
            return _status(503, "ServiceUnavailable", str(error))
        if len(results) > MOST_SERIES:
            return _status(
                400, "BadRequest", f"{len(results):,} series; accepted is a labelSelector that leaves {MOST_SERIES:,}"
            )
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return JSONResponse(_list([_value(one, now) for one in results]))


def _log_refusal(error: Exception) -> None:
    """Log what callers may not show, such as a missing key; an unreachable service is logged where it is asked."""
    if not isinstance(error, Unreachable):
        logger.warning("%s", error)


def _always(document: Mapping[str, object]) -> Callable[[Request], JSONResponse]:
    return lambda _: JSONResponse(document)


def _list(items: list[Mapping[str, object]]) -> Mapping[str, object]:
    return {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}


def _value(series: Series, now: str) -> Mapping[str, object]:
    labels, value = series.labels, quantity(series.amount)
    return {"metricName": METRIC, "metricLabels": labels, "timestamp": now, "value": value}


def _status(code: int, reason: str, message: str) -> JSONResponse:
    """An error response in Kubernetes' form (`Status`)."""
    fields = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    return JSONResponse({**fields, "message": message, "reason": reason, "code": code}, code)
