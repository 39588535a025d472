"""Liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field
from sqlalchemy.exc import SQLAlchemyError

from app import queue
from app.database import seen
from app.database.engine import Database
from app.http.dependencies import FromDatabase, FromSettings, Tenant
from app.http.exchange import LoopLocal
from app.jobs import listing as jobs
from app.settings import Settings

KNOWN_SECONDS = 0.25
"""For which it is not asked again whether the service is ready."""

router = APIRouter(tags=["service"])


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether everything that the service needs is there; each check is `ok` or says what is missing."""

    ready: bool
    database: str
    broker: str
    worker: str = Field(description="Whether a worker was seen lately.")


class JobsCollector(Collector):
    """Number of jobs by type and state, counted when it is asked for."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Names the metrics without asking the database."""
        return [GaugeMetricFamily("steward_jobs", "Jobs by type and state.", labels=["type", "state"])]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Counts the jobs; without a database there is nothing to tell."""
        family = GaugeMetricFamily("steward_jobs", "Jobs by type and state.", labels=["type", "state"])
        try:
            with self.database.reading() as session:
                counts = jobs.counts(session)
        except SQLAlchemyError:
            return []
        for labels, number in counts.items():
            family.add_metric(labels, number)
        return [family]


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """Liveness: the process answers."""
    return Health()


class ReadinessCheck:
    """Finds out whether the service is ready: once at a time, and no more often than is worth knowing.

    Anybody may ask, as often as they like: neither the database nor the broker is asked so often, and no more than one
    thread waits for one that does not answer. Lives on one event loop.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._found: asyncio.Task[Readiness] | None = None
        self._until = 0.0

    async def __call__(self) -> Readiness:
        """What was found a moment ago, or is found now."""
        if self._found is None or (self._found.done() and time.monotonic() > self._until):
            self._found = asyncio.create_task(self._find())
        return await asyncio.shield(self._found)  # others wait for it, whoever of them gives up

    async def _find(self) -> Readiness:
        try:
            return await run_in_threadpool(_checked, self._database, self._settings)
        finally:
            self._until = time.monotonic() + KNOWN_SECONDS


@router.get("/readyz", operation_id="readiness", responses={503: {"model": Readiness, "description": "Not ready."}})
async def readiness(request: Request, database: FromDatabase, settings: FromSettings) -> JSONResponse:
    """Readiness: database, broker, and a worker seen lately; as of a quarter of a second ago at most."""
    local: LoopLocal = request.app.gateway.local
    found = await local.get(ReadinessCheck, database, settings)()
    return JSONResponse(found.model_dump(), 200 if found.ready else 503)


def _checked(database: Database, settings: Settings) -> Readiness:
    checks = {"database": "ok", "broker": queue.broker_problem() or "ok"}
    try:
        checks["worker"] = _worker(database, settings)
    except SQLAlchemyError as error:
        checks |= {"database": f"does not answer: {type(error).__name__}", "worker": "unknown"}
    if checks["database"] == "ok" and database.disk_is_full:
        checks["database"] = "its disk is full"
    return Readiness(ready=all(found == "ok" for found in checks.values()), **checks)


def _worker(database: Database, settings: Settings) -> str:
    with database.reading() as session:
        found = seen.seen_lately(session, settings.worker_seen_seconds)
    return "ok" if found is not None else f"none seen in the last {settings.worker_seen_seconds:g} s"


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse)
def metrics(request: Request, tenant: Tenant) -> PlainTextResponse:
    """Metrics in Prometheus' text format: this process's, the number of all jobs, and what names the tenant's own."""
    registries: list[CollectorRegistry] = [request.app.state.registry, request.app.state.drift_meter.of(tenant)]
    text = b"".join(generate_latest(registry) for registry in registries)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)
