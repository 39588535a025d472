"""The application: `create_app()` combines settings, database, gateway, error handlers and routers.

The module `endpoints` of each noun of the table `app.nouns` exports `router`, and optionally `hot_routes`, which the
gateway serves, with their OpenAPI entries `openapi_paths` (`{path: {method: operation}}`) and components
`openapi_schemas`. Background tasks belong in the router's lifespan.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from prometheus_client import GC_COLLECTOR, PLATFORM_COLLECTOR, PROCESS_COLLECTOR, CollectorRegistry
from starlette.types import ASGIApp, Receive, Scope, Send

from app import queue
from app.charts.text import use_currency
from app.dashboard import api_docs
from app.dashboard import endpoints as dashboard
from app.dashboard.rendering import ENVIRONMENT, error_page
from app.database.engine import Database
from app.decisions.service import CompiledWorkloads, StateDecisions
from app.http import health, problems
from app.http.caller import Quotas
from app.http.dependencies import Problem
from app.http.dependencies import problems as documented
from app.http.gateway import Gateway
from app.http.health import LogMeter, ReadinessChecks, RequestMeter, ServiceCollector, observer
from app.http.problems import SERVERS, document_keys, only_unions
from app.http.query import known_query, storable
from app.keys.access import Access, document_access
from app.keys.guard import KeyGuard
from app.keys.ring import KeyRing, Rates
from app.keys.service import RunTokens
from app.nouns import NOUNS
from app.runs.deciding import StartedRuns
from app.runs.outcomes import Staleness
from app.runs.reporter import Reporter
from app.settings import Settings, get_settings
from app.telemetry.counts import TenantCounter, drift_counter, request_counter
from app.workloads.snapshot import WorkloadCache

ENDPOINTS: Sequence[ModuleType] = [import_module(f"app.{package}.endpoints") for package in NOUNS]
"""The nouns' modules of routes; an entry of the table without one fails here."""

DESCRIPTION = """Allocation as a service: register a workload, upload samples of past executions, fit a domain model,
train an agent, and get the next resource step for each reported iteration."""

TAGS = [
    {"name": noun.tag, "x-cli": noun.command, "description": noun.description}
    for noun in NOUNS.values()
    if noun.command
]
"""OpenAPI tags, with the command line's noun for each."""


class Application(FastAPI):
    """FastAPI application behind the gateway; ``gateway`` is its outermost ASGI layer."""

    gateway: ASGIApp

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.gateway = super().__call__

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass an ASGI event to the gateway."""
        await self.gateway(scope, receive, send)


def tune_garbage_collection() -> None:
    """Freeze all present objects, and collect garbage less often, as later objects are short-lived."""
    gc.collect()
    gc.freeze()  # no collection walks through modules and routes any more
    gc.set_threshold(20_000, 50, 100)


@cache
def nouns() -> APIRouter:
    """Router with all routes except hot ones, which the gateway serves; cached per process, as building it is slow."""
    router = APIRouter(responses=documented(), dependencies=[Depends(known_query), Depends(storable)])
    for part in (health, dashboard, api_docs, *ENDPOINTS):
        router.include_router(part.router)
    return router


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Context manager: start logging, background tasks and the database, and stop them at the end."""
    logging.getLogger().addHandler(app.state.log_meter)
    async with nouns().lifespan_context(app):
        yield
    logging.getLogger().removeHandler(app.state.log_meter)
    if app.state.observer is not None:
        await app.state.observer.close()
    app.state.database.dispose()


def _registry(service: ServiceCollector, log_meter: LogMeter) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(log_meter)
    for collector in (PROCESS_COLLECTOR, PLATFORM_COLLECTOR, GC_COLLECTOR):
        registry.register(collector)
    registry.register(service)
    return registry


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI schema, with problem documents, hot routes and required scopes."""
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            tags=TAGS,
            servers=SERVERS,
        )
        components = schema.setdefault("components", {}).setdefault("schemas", {})
        problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
        components.update({**problem.pop("$defs"), "Problem": problem})
        for noun in ENDPOINTS:
            components.update(getattr(noun, "openapi_schemas", {}))
            for path, operations in getattr(noun, "openapi_paths", {}).items():
                schema["paths"].setdefault(path, {}).update(operations)
        document_keys(schema)
        document_access(schema)
        only_unions(schema)
        app.openapi_schema = schema
    return app.openapi_schema


def _guard(app: FastAPI) -> KeyGuard:
    """The guard of all routes, which must be registered before."""
    state, provider = app.state, None
    if state.settings.oidc_issuer:
        from app.keys.provider import Provider

        provider = Provider(state.settings)
    tokens = RunTokens(state.database)
    return KeyGuard(Access(app.router.routes), state.keys, tokens, provider, state.rates, state.settings)


def create_app(settings: Settings | None = None, database: Database | None = None) -> Application:
    """Build the service as an ASGI application; the database must be migrated (`steward db upgrade`).

    Args:
        settings: None: those of the environment.
        database: None: made by the settings.
    """
    settings = settings or get_settings()
    database = database or Database(settings.database_url, settings)
    queue.use(settings)
    use_currency(settings.currency)
    ENVIRONMENT.globals["documentation"] = settings.documentation_url
    app = Application(
        title="Steward",
        version="0.1.0",
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.settings = settings
    app.state.staleness = Staleness.of(settings)
    app.state.database = database
    app.state.snapshots = WorkloadCache(
        database, settings.policy_poll_seconds, size_bytes=settings.workload_cache_bytes
    )
    app.state.compiled_workloads = CompiledWorkloads(app.state.snapshots)
    app.state.started_runs = StartedRuns()
    app.state.error_page = error_page
    app.state.keys = KeyRing(database, Quotas.of(settings))
    limits = settings.key_requests_per_second, settings.tenant_requests_per_second
    app.state.rates = Rates(*limits) if any(limits) else None
    app.state.log_meter, app.state.observer = LogMeter(), observer(settings)
    service = ServiceCollector(database, settings, lambda: app.state.staleness)
    app.state.registry = _registry(service, app.state.log_meter)
    app.state.drifts, app.state.requests = drift_counter(), request_counter()
    app.state.refusals = TenantCounter("steward_refusals", "Requests refused at a limit of the tenant.", ("limit",))
    app.state.readiness, app.state.state_decisions = ReadinessChecks(database, settings), StateDecisions()
    meters = app.state.drifts, app.state.requests
    app.state.reporter = Reporter(database, app.state.compiled_workloads, *meters, started=app.state.started_runs)
    hot_routes = [route for noun in ENDPOINTS for route in getattr(noun, "hot_routes", [])]
    app.router.routes += [*hot_routes, *nouns().routes]
    problems.install(app)
    meter = RequestMeter(app.state.registry)
    app.gateway = Gateway(app, app.gateway, hot_routes, _guard(app), meter, settings, app.state.observer)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app
