"""The outermost ASGI layer of all routes: authentication, limits, timeouts, errors, metering."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from app.database.engine import commit_deadline
from app.http import limits
from app.http.caller import Guard, current_caller
from app.http.exchange import UNKNOWN, Exchange, HotRoute
from app.http.health import Observer, RequestMeter
from app.http.limits import METHODS
from app.http.query import check_address
from app.http.short_ids import complete_path
from app.settings import Settings
from app.telemetry.attributes import noting
from app.telemetry.logs import began, working

COUNTED = frozenset({*METHODS, "HEAD", "OPTIONS"})
"""Methods with a label of their own in metrics."""


class Gateway:
    """ASGI application that serves hot routes itself and passes other requests to the framework.

    Args:
        app: the application of the routes.
        inner: the framework's ASGI application.
        routes: the hot routes.
        guard: authenticates and authorises requests.
        meter: counts requests.
        observer: logs and traces requests; None: neither.
        settings: the limits.
    """

    def __init__(
        self,
        app: FastAPI,
        inner: ASGIApp,
        routes: Sequence[HotRoute],
        guard: Guard,
        meter: RequestMeter,
        settings: Settings,
        observer: Observer | None = None,
    ) -> None:
        self.app, self.inner, self.guard, self.meter, self.observer = app, inner, guard, meter, observer
        self.hot = [(route.method, route.path_regex.match, route) for route in routes]
        self.json, self.upload = limits.of_json(settings), limits.of_upload(settings)
        self.short = limits.of_hot(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request by its hot route or by the inner application, within its limits of size and time."""
        if scope["type"] != "http":  # events of the start and the end; no WebSocket is served
            await self.inner(scope, receive, send)
            return
        limit = self.upload if limits.is_upload(scope) else self.json
        exchange = Exchange(self.app, scope, receive, send, limit)
        if self.observer is not None:
            self.observer.begin(exchange)
        try:
            async with exchange.deadline:
                route = self._route(exchange)
                if route is not None:
                    exchange.limits = self.short
                template = None if route is None else route.path
                caller = self.guard.cached_caller(scope, template) or await self.guard.admit(scope, template)
                exchange.caller = scope["caller"] = caller
                limits.check_headers(scope, exchange.limits)  # up to here requests are rejected unread
                if await complete_path(self.app, caller.tenant, scope):
                    route = self._route(exchange)
                if route is None:
                    await self._hand_on(exchange)
                    return
                check_address(exchange.path, scope["query_string"])
                answer = await route.endpoint(exchange)
            await exchange.answer(*answer)
        except Exception as failure:  # noqa: BLE001 - answered, or raised on
            await exchange.refuse(failure)
        finally:
            if exchange.work is not None and not exchange.work.done():  # answered already: threads end late
                await asyncio.wait([exchange.work])
            self._count(exchange)

    def _route(self, exchange: Exchange) -> HotRoute | None:
        """The hot route of the request; None if there is none."""
        method, path = exchange.scope["method"], exchange.scope["path"]
        for served, match, route in self.hot:
            if served == method or (method == "HEAD" and served == "GET"):
                marks = match(path)
                if marks is not None:
                    exchange.route, exchange.path = route.path, marks.groupdict()
                    return route
        return None

    async def _hand_on(self, exchange: Exchange) -> None:
        """Pass the request to the framework; HEAD as GET, whose body is not sent."""
        scope = {**exchange.scope, "method": "GET"} if exchange.scope["method"] == "HEAD" else exchange.scope
        token = commit_deadline.set(exchange.started + exchange.limits.seconds)
        address = scope["client"][0] if scope.get("client") else None
        named = current_caller.set(exchange.caller._replace(address=address))
        try:
            exchange.trace = exchange.trace or began(
                next((value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), "")
            )
            with working(exchange.trace), noting() as exchange.attributes:
                # A task of its own: the framework waits for its threads, even where its time is over.
                exchange.work = asyncio.ensure_future(self.inner(scope, exchange.receive, exchange.send))
            await asyncio.shield(exchange.work)
        finally:
            if exchange.work is not None:
                exchange.work.cancel()
            current_caller.reset(named)
            commit_deadline.reset(token)
            exchange.route = getattr(scope.get("route"), "path", UNKNOWN)

    def _count(self, exchange: Exchange) -> None:
        route = exchange.route
        method = exchange.scope["method"]
        if route == UNKNOWN or method not in COUNTED:  # labels are kept for ever: callers must not invent any
            method = "any"
        seconds = time.monotonic() - exchange.started
        self.meter.count(method, route, exchange.status or 500, seconds, exchange.decision)
        if self.observer is not None:
            self.observer.end(exchange, seconds)
