"""Liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Literal, get_args

from fastapi import APIRouter, Query, Request
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
from app.kinds.contract.run_outcome import LIVE, RunOutcome
from app.runs import outcomes
from app.runs.outcomes import Staleness
from app.settings import Settings

LATELY = timedelta(hours=1)
GOING_ON: tuple[RunOutcome, ...] = (*LIVE, "stale")
KNOWN_SECONDS = 0.25
"""For which it is not asked again whether the service is ready."""

router = APIRouter(tags=["service"])
EXCLUDED = "excluded"


class Health(BaseModel):
    """The process responds."""

    status: str = "ok"


class Readiness(BaseModel):
    """Whether everything the service needs is available; each check is `ok`, `excluded`, or the problem found."""

    ready: bool
    database: str
    broker: str
    worker: str = Field(description="Whether a worker was seen recently.")


class ServiceCollector(Collector):
    """What the whole service does, asked for when it is read: jobs, runs, workers, database, and this host's disk."""

    def __init__(self, database: Database, settings: Settings, staleness: Callable[[], Staleness]) -> None:
        self.database, self.settings, self.staleness = database, settings, staleness

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Names the metrics without asking the database."""
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
        """Asks; without a database there is little to tell."""
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
                workers.add_metric((), seen.alive(session, self.settings.worker_seen_seconds))
            up.add_metric((), 1)
        except SQLAlchemyError:
            up.add_metric((), 0)
        with suppress(OSError):  # the folder is not there
            total, _, left = shutil.disk_usage(self.settings.data_dir)
            free.add_metric((), left)
            size.add_metric((), total)
        return [counted, waiting, judged, ended, workers, up, free, size]


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
    """Finds out whether the service is ready: each check once at a time, and no more often than is worth knowing.

    Anybody may ask, as often as they like: neither the database nor the broker is asked so often, and no more than one
    thread waits for one that does not answer. Lives on one event loop.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        self._database, self._settings = database, settings
        self._found: dict[Check, asyncio.Task[str]] = {}
        self._until: dict[Check, float] = {}

    async def __call__(self, exclude: Collection[Check]) -> Readiness:
        """What was found a moment ago, or is found now."""
        looked_at = [name for name in CHECKS if name not in exclude]
        said = await asyncio.gather(*map(self._said, looked_at))
        found = dict.fromkeys(CHECKS, EXCLUDED) | dict(zip(looked_at, said, strict=True))
        return Readiness(ready=all(one == "ok" for one in said), **found)

    async def _said(self, name: Check) -> str:
        found = self._found.get(name)
        if found is None or (found.done() and time.monotonic() > self._until[name]):
            found = self._found[name] = asyncio.create_task(self._look(name))
        return await asyncio.shield(found)  # others wait for it, whoever of them gives up

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
async def readiness(
    request: Request, database: FromDatabase, settings: FromSettings, exclude: Excluded
) -> JSONResponse:
    """Check the database, the broker and the workers, with results at most 250 ms old; 503 if a check fails."""
    local: LoopLocal = request.app.gateway.local
    found = await local.get(ReadinessChecks, database, settings)(exclude)
    return JSONResponse(found.model_dump(), 200 if found.ready else 503)


def _database(database: Database, _: Settings) -> str:
    try:
        with database.reading() as session:
            session.connection()
    except SQLAlchemyError as error:
        return f"does not answer: {type(error).__name__}"
    return "its disk is full" if database.disk_is_full else "ok"


def _broker(_: Database, __: Settings) -> str:
    problem = queue.broker_problem()
    return "ok" if problem is None else f"does not answer: {problem.partition(':')[0]}"  # the rest may name its address


def _worker(database: Database, settings: Settings) -> str:
    try:
        with database.reading() as session:
            found = seen.seen_lately(session, settings.worker_seen_seconds)
    except SQLAlchemyError:
        return "unknown"
    return "ok" if found is not None else f"none seen in the last {settings.worker_seen_seconds:g} s"


CHECKS: Mapping[Check, Callable[[Database, Settings], str]] = {
    "database": _database,
    "broker": _broker,
    "worker": _worker,
}


@router.get("/metrics", operation_id="metrics", summary="Get metrics", response_class=PlainTextResponse)
def metrics(request: Request, tenant: Tenant) -> PlainTextResponse:
    """Metrics in Prometheus text format: this process, counts of all jobs and runs, and the tenant's drift."""
    registries: list[CollectorRegistry] = [request.app.state.registry, request.app.state.drift_meter.of(tenant)]
    text = b"".join(generate_latest(registry) for registry in registries)
    return PlainTextResponse(text, media_type=CONTENT_TYPE_LATEST)
