"""Health, readiness and metrics of a service process."""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import accumulate, product
from typing import TYPE_CHECKING, Annotated, Literal, get_args

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from app import queue
from app.agents import repository as agents
from app.database import leases
from app.database.base import utc_now
from app.database.engine import Database
from app.http.dependencies import Tenant
from app.http.exchange import Exchange
from app.jobs import repository as jobs
from app.kinds.contract.engine import Source
from app.kinds.contract.run_outcome import LIVE, RunOutcome
from app.runs import outcomes, savings, standing
from app.runs.outcomes import Staleness
from app.settings import Settings
from app.telemetry.attributes import Value, of_answer
from app.telemetry.logs import began
from app.telemetry.requests import RequestLog

if TYPE_CHECKING:
    from app.telemetry.spans import Spans


LATELY = timedelta(hours=1)
GOING_ON: tuple[RunOutcome, ...] = (*LIVE, "stale")
KNOWN_SECONDS = 0.25
"""Seconds for which the result of a readiness check is cached."""

router = APIRouter(tags=["service"])
EXCLUDED = "excluded"


class Health(BaseModel):
    """Response of the liveness check."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether everything the service needs is available; each check is `ok`, `excluded`, or the problem found."""

    ready: bool
    database: str
    broker: str
    worker: str = Field(description="Whether a worker was seen recently.")


class ServiceCollector(Collector):
    """Prometheus collector of the whole service's jobs, runs, workers and database, and this host's disk."""

    def __init__(self, database: Database, settings: Settings, staleness: Callable[[], Staleness]) -> None:
        self.database, self.settings, self.staleness = database, settings, staleness

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The metrics without values; doesn't query the database."""
        return [
            GaugeMetricFamily("steward_jobs", "Jobs by type and state.", labels=["type", "state"]),
            GaugeMetricFamily("steward_job_waiting_seconds", "For how long the first job in line has waited."),
            GaugeMetricFamily("steward_runs", "Runs by outcome.", labels=["outcome"]),
            GaugeMetricFamily("steward_runs_ended", "Runs that ended within an hour, by outcome.", labels=["outcome"]),
            GaugeMetricFamily("steward_workers", "Workers that were seen lately."),
            GaugeMetricFamily("steward_database_up", "Whether the database answers."),
            GaugeMetricFamily("steward_disk_free_bytes", "Room on the disk of the data folder."),
            GaugeMetricFamily("steward_disk_size_bytes", "Size of that disk."),
        ]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The metrics with their present values; if the database fails, only its state and the disk's."""
        counted, waiting, judged, ended, workers, up, free, size = self.describe()
        try:
            with self.database.reading() as session:
                for labels, number in jobs.counts(session).items():
                    counted.add_metric(labels, number)
                waiting.add_metric((), jobs.waiting_seconds(session))
                rule = self.staleness()
                runs, lately = outcomes.counts(session, rule), outcomes.ended_since(session, rule, LATELY)
                for outcome in get_args(RunOutcome):
                    judged.add_metric((outcome,), runs.get(outcome, 0))
                    if outcome not in GOING_ON:
                        ended.add_metric((outcome,), lately.get(outcome, 0))
                workers.add_metric((), leases.alive(session, self.settings.worker_seen_seconds))
            up.add_metric((), 1)
        except SQLAlchemyError:
            up.add_metric((), 0)
        with suppress(OSError):  # the folder is not there
            total, _, left = shutil.disk_usage(self.settings.data_dir)
            free.add_metric((), left)
            size.add_metric((), total)
        return [counted, waiting, judged, ended, workers, up, free, size]


class TenantCollector(Collector):
    """Prometheus collector of one tenant: cost saved by runs that finished within the last hour, age of champions in
    seconds, and lowest probability that running runs meet their targets, by workload."""

    def __init__(self, database: Database, tenant: str) -> None:
        self.database, self.tenant = database, tenant

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """The metrics without values; doesn't query the database."""
        cost = "Cost that runs which finished within an hour saved, without runs of mode advise."
        unmeasured = "Runs that finished within an hour and were not compared: the other allocation was not measured."
        age = "Seconds since the training of the agent that serves a workload's decisions in a role."
        likely = "Lowest probability of meeting a target among a workload's running runs."
        return [
            GaugeMetricFamily("steward_saved_cost", cost, labels=["against"]),
            GaugeMetricFamily("steward_unmeasured_runs", unmeasured, labels=["against"]),
            GaugeMetricFamily("steward_champion_age_seconds", age, labels=["workload", "role"]),
            GaugeMetricFamily("steward_target_probability", likely, labels=["workload"]),
        ]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The metrics with their present values; without any if the database fails."""
        costs, unmeasured, ages, chances = self.describe()
        now = utc_now()
        with suppress(SQLAlchemyError), self.database.reading() as session:
            saved = savings.total(savings.saved_since(session, self.tenant, now - LATELY))
            for against, counts in saved.items():
                costs.add_metric((against,), counts.cost)
                unmeasured.add_metric((against,), counts.unmeasured)
            for workload, role, trained_at in agents.champions(session, self.tenant):
                ages.add_metric((workload, role), (now - trained_at).total_seconds())
            for workload, chance in standing.lowest_chances(session, self.tenant).items():
                chances.add_metric((workload,), chance)
        return [costs, unmeasured, ages, chances]


@router.get("/healthz", operation_id="health", summary="Check liveness")
async def health() -> Health:
    """Liveness check: the process responds."""
    return Health()


Check = Literal["database", "broker", "worker"]
Excluded = Annotated[
    list[Check],
    Query(default_factory=list, description="Checks to skip; decisions need neither `broker` nor `worker`."),
]


class ReadinessChecks:
    """Readiness checks, each run at most once at a time and at most every 250 ms.

    So unauthenticated requests can't overload database or broker, and at most one thread per check waits for a
    dependency that doesn't respond. Bound to one event loop.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._found: dict[Check, asyncio.Task[str]] = {}
        self._until: dict[Check, float] = {}

    async def __call__(self, exclude: Collection[Check]) -> Readiness:
        """The result of all checks but the excluded ones, from the cache or new."""
        looked_at = [name for name in CHECKS if name not in exclude]
        results = await asyncio.gather(*map(self._cached_result, looked_at))
        result = dict.fromkeys(CHECKS, EXCLUDED) | dict(zip(looked_at, results, strict=True))
        return Readiness(ready=all(one == "ok" for one in results), **result)

    async def _cached_result(self, name: Check) -> str:
        result = self._found.get(name)
        if result is None or (result.done() and time.monotonic() > self._until[name]):
            result = self._found[name] = asyncio.create_task(self._look(name))
        return await asyncio.shield(result)  # other requests wait for it even if this one is cancelled

    async def _look(self, name: Check) -> str:
        try:
            return await run_in_threadpool(CHECKS[name], self._database, self._settings)
        finally:
            self._until[name] = time.monotonic() + KNOWN_SECONDS


@router.get(
    "/readyz",
    operation_id="readiness",
    summary="Check readiness",
    responses={503: {"model": Readiness, "description": "A check failed."}},
)
async def readiness(request: Request, exclude: Excluded) -> JSONResponse:
    """Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check fails."""
    checks: ReadinessChecks = request.app.state.readiness
    result = await checks(exclude)
    return JSONResponse(result.model_dump(), 200 if result.ready else 503)


def _database(database: Database, _: Settings) -> str:
    try:
        with database.reading() as session:
            connection = session.connection()
            if not database.is_sqlite and connection.scalar(text("SHOW default_transaction_read_only")) == "on":
                return "takes no writes: it is read-only"
            if not database.is_sqlite and connection.scalar(text("SELECT pg_is_in_recovery()")):
                return "takes no writes: it is a standby"
    except SQLAlchemyError as error:
        return f"does not answer: {type(error).__name__}"
    return "its disk is full" if database.disk_is_full else "ok"


def _broker(_: Database, __: Settings) -> str:
    problem = queue.broker_problem()
    return "ok" if problem is None else f"does not answer: {problem.partition(':')[0]}"  # the rest may name its address


def _worker(database: Database, settings: Settings) -> str:
    try:
        with database.reading() as session:
            owner = leases.seen_lately(session, settings.worker_seen_seconds)
    except SQLAlchemyError:
        return "unknown"
    return "ok" if owner is not None else f"none seen in the last {settings.worker_seen_seconds:g} s"


CHECKS: Mapping[Check, Callable[[Database, Settings], str]] = {
    "database": _database,
    "broker": _broker,
    "worker": _worker,
}


@router.get("/metrics", operation_id="metrics", summary="Get metrics", response_class=PlainTextResponse)
def metrics(request: Request, tenant: Tenant) -> PlainTextResponse:
    """Metrics in Prometheus text format: this process, counts of all jobs and runs, and the tenant's own."""
    state = request.app.state
    own = [counter.of(tenant) for counter in (state.drifts, state.requests, state.refusals)]
    registries: list[CollectorRegistry] = [state.registry, *own]
    registries.append(CollectorRegistry())
    registries[-1].register(TenantCollector(state.database, tenant))
    text = b"".join(generate_latest(registry) for registry in registries)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)


# Requests and their seconds by route, and errors logged: plain numbers, until the registry asks for them.


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
LABELS = ("method", "route", "status")
CREATED = 201


class _Seconds:
    """Histogram of request durations; ``buckets[i]`` counts those up to ``BUCKETS[i]`` seconds, the last the rest."""

    def __init__(self) -> None:
        self.sum = 0.0
        self.buckets = [0] * (len(BUCKETS) + 1)

    def cumulative(self) -> Iterator[tuple[str, float]]:
        """Upper bounds with cumulative counts, as Prometheus needs them."""
        bounds = (*map(str, BUCKETS), "+Inf")
        return zip(bounds, accumulate(self.buckets), strict=True)


class RequestMeter(Collector):
    """Counts requests and durations by method, route and status, decisions by source; bound to one event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._decisions = dict.fromkeys(product(get_args(Source), (False, True)), 0)
        self._seconds: dict[tuple[str, str], _Seconds] = {}
        registry.register(self)

    def count(self, method: str, route: str, status: int, seconds: float, body: bytes = b"") -> None:
        """Count one answered request and its duration in seconds; with status 201 the decision in ``body``, too."""
        if status == CREATED:
            # A decision's own source comes first, and its agent next: null unless one is promoted
            source, _, rest = body.partition(b'"source":"')[2].partition(b'"')
            result = source.decode(), not rest.startswith(b',"agent":null')
            if result in self._decisions:
                self._decisions[result] += 1
        key = (method, route, status)
        self._counts[key] = self._counts.get(key, 0) + 1
        outcome = self._seconds.get(key[:2])
        if outcome is None:
            outcome = self._seconds[key[:2]] = _Seconds()
        outcome.sum += seconds
        outcome.buckets[bisect_left(BUCKETS, seconds)] += 1

    def collect(self) -> Iterable[Metric]:
        """Prometheus counters of requests and decisions, and histogram of requests' seconds."""
        requests = CounterMetricFamily("steward_requests", "Requests answered.", labels=LABELS)
        for (method, route, status), number in list(self._counts.items()):
            requests.add_metric((method, route, str(status)), number)
        taken = HistogramMetricFamily("steward_request_seconds", "Seconds to answer.", labels=LABELS[:2])
        for labels, seconds in list(self._seconds.items()):
            taken.add_metric(labels, list(seconds.cumulative()), seconds.sum)
        text = "Decisions on reports of runs, by their source, and whether an agent is promoted."
        metric = CounterMetricFamily("steward_decisions", text, labels=["source", "promoted"])
        for (source, promoted), number in self._decisions.items():
            metric.add_metric([source, str(promoted).lower()], number)
        return [requests, taken, metric]


class LogMeter(logging.Handler, Collector):
    """Counts this process's warnings and errors, for example of a policy that fails and is replaced by a fallback."""

    LEVELS = ("warning", "error", "critical")

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._counts = Counter[str](dict.fromkeys(self.LEVELS, 0))

    def emit(self, record: logging.LogRecord) -> None:
        """Count one record under its level."""
        self._counts[record.levelname.lower()] += 1

    def collect(self) -> Iterable[Metric]:
        """Prometheus counter of warnings and errors by level."""
        family = CounterMetricFamily("steward_log_records", "Warnings and errors logged.", labels=["level"])
        for level, number in self._counts.items():
            family.add_metric([level], number)
        return [family]


# For operators: a log line and a span for each request, joined by ids.


NOBODY = "", "nobody"
SERVER_ERROR = 500
STATUS = "http.response.status_code"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class Observer:
    """Logs and traces requests; bound to one event loop.

    Args:
        log: writes a line per request; None: no log.
        spans: exports a span per request; None: no traces.
    """

    def __init__(self, log: RequestLog | None, spans: Spans | None) -> None:
        self._log, self._spans = log, spans

    def begin(self, exchange: Exchange) -> None:
        """Read the headers `X-Request-ID` and `traceparent` of a request, and begin its span."""
        for name, value in exchange.scope["headers"]:
            if name == b"traceparent":
                exchange.traceparent = value
            elif name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                exchange.request_id = value
        if self._spans is not None:
            exchange.trace = began(exchange.traceparent.decode("latin-1"))

    def end(self, exchange: Exchange, seconds: float) -> None:
        """Write the log line of an answered request that took ``seconds``, and export its span."""
        caller = getattr(exchange, "caller", None)
        tenant, name = NOBODY if caller is None else (caller.tenant, caller.name)
        ended, status = time.time(), exchange.status or SERVER_ERROR
        method, route, trace = exchange.scope["method"], exchange.route, exchange.trace
        if self._log is not None:
            which = exchange.request_id, trace or exchange.traceparent
            self._log.add((ended, seconds, method, route, status, tenant, name, *which, exchange.decision))
        if self._spans is not None and trace is not None:
            fields: dict[str, Value] = {"http.request.method": method, "http.route": route, "steward.tenant": tenant}
            fields |= {STATUS: status, **exchange.attributes, **of_answer(exchange.decision)}
            self._spans.add(f"{method} {route}", trace, ended, seconds, fields, failed=status >= SERVER_ERROR)

    async def close(self) -> None:
        """Flush the log and the spans."""
        if self._log is not None:
            await self._log.close()
        if self._spans is not None:
            self._spans.close()


def observer(settings: Settings) -> Observer | None:
    """The observer that the settings enable; None if neither log nor traces are enabled."""
    log = RequestLog(json=settings.log_format == "json") if settings.log_requests else None
    spans = None
    if settings.traces:
        from app.telemetry.spans import Spans

        spans = Spans()
    return Observer(log, spans) if log or spans else None
