"""Liveness, readiness and metrics."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
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
from app.jobs import listing as jobs
from app.settings import Settings

router = APIRouter(tags=["service"])
EXCLUDED = "excluded"


class Health(BaseModel):
    """The process answers."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether everything that the service needs is there; each check is `ok`, `excluded`, or says what is missing."""

    ready: bool
    database: str
    broker: str
    worker: str = Field(description="Whether a worker was seen lately.")


class ServiceCollector(Collector):
    """What the whole service does, asked for when it is read: jobs, workers, database, and this host's disk."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database, self.settings = database, settings

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Names the metrics without asking the database."""
        return [
            GaugeMetricFamily("steward_jobs", "Jobs by type and state.", labels=["type", "state"]),
            GaugeMetricFamily("steward_job_waiting_seconds", "For how long the first job in line has waited."),
            GaugeMetricFamily("steward_workers", "Workers that were seen lately."),
            GaugeMetricFamily("steward_database_up", "Whether the database answers."),
            GaugeMetricFamily("steward_disk_free_bytes", "Room on the disk of the data folder."),
            GaugeMetricFamily("steward_disk_size_bytes", "Size of that disk."),
        ]

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """Asks; without a database there is little to tell."""
        counted, waiting, workers, up, free, size = self.describe()
        try:
            with self.database.reading() as session:
                for labels, number in jobs.counts(session).items():
                    counted.add_metric(labels, number)
                waiting.add_metric((), jobs.waiting_seconds(session))
                workers.add_metric((), seen.alive(session, self.settings.worker_seen_seconds))
            up.add_metric((), 1)
        except SQLAlchemyError:
            up.add_metric((), 0)
        with suppress(OSError):  # the folder is not there
            total, _, left = shutil.disk_usage(self.settings.data_dir)
            free.add_metric((), left)
            size.add_metric((), total)
        return [counted, waiting, workers, up, free, size]


@router.get("/healthz", operation_id="health")
async def health() -> Health:
    """Liveness: the process answers."""
    return Health()


Check = Literal["database", "broker", "worker"]
Excluded = Annotated[
    list[Check],
    Query(default_factory=list, description="What is not looked at: decisions need neither broker nor worker."),
]


@router.get("/readyz", operation_id="readiness", responses={503: {"model": Readiness, "description": "Not ready."}})
def readiness(database: FromDatabase, settings: FromSettings, exclude: Excluded) -> JSONResponse:
    """Readiness: database, broker, and a worker seen lately; 503 where one is not, and which."""
    checks = {"database": _database, "broker": _broker, "worker": _worker}
    found = {name: EXCLUDED if name in exclude else look(database, settings) for name, look in checks.items()}
    ready = all(said in ("ok", EXCLUDED) for said in found.values())
    return JSONResponse(Readiness(ready=ready, **found).model_dump(), 200 if ready else 503)


def _database(database: Database, _: Settings) -> str:
    try:
        with database.reading() as session:
            session.connection()
    except SQLAlchemyError as error:
        return f"does not answer: {type(error).__name__}"
    return "its disk is full" if database.disk_is_full else "ok"


def _broker(_: Database, __: Settings) -> str:
    return queue.broker_problem() or "ok"


def _worker(database: Database, settings: Settings) -> str:
    try:
        with database.reading() as session:
            found = seen.seen_lately(session, settings.worker_seen_seconds)
    except SQLAlchemyError:
        return "unknown"
    return "ok" if found is not None else f"none seen in the last {settings.worker_seen_seconds:g} s"


@router.get("/metrics", operation_id="metrics", response_class=PlainTextResponse)
def metrics(request: Request, tenant: Tenant) -> PlainTextResponse:
    """Metrics in Prometheus' text format: this process's, the number of all jobs, and what names the tenant's own."""
    registries: list[CollectorRegistry] = [request.app.state.registry, request.app.state.drift_meter.of(tenant)]
    text = b"".join(generate_latest(registry) for registry in registries)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)
