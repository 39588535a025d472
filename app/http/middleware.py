"""Pure ASGI middleware: request metrics, time-outs, and the cap on request bodies.

Each wraps the next application and costs a few microseconds; none of them reads or copies a body.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.database.engine import commit_deadline
from app.errors import StewardError, Timeout, TooLarge
from app.http.problems import MEDIA_TYPE, document, headers_of
from app.settings import Settings

BODILESS = frozenset({"GET", "HEAD", "DELETE", "OPTIONS"})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
GRACE_SECONDS = 0.5


async def send_problem(send: Send, error: StewardError, path: str) -> None:
    """Answer with a problem document, without any framework."""
    body = document(error, path)
    headers = {"content-type": MEDIA_TYPE, "content-length": str(len(body)), **headers_of(error)}
    pairs = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def is_upload(scope: Scope) -> bool:
    """Whether this is a sample upload, which has limits of its own."""
    return scope["method"] == "POST" and str(scope["path"]).endswith("/samples")


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


class Metrics:
    """Meters every request."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry, meter: RequestMeter | None = None) -> None:
        self.app = app
        self.meter = meter or RequestMeter(registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            route = getattr(scope.get("route"), "path", "unknown")
            method = scope["method"] if route != "unknown" else "any"
            self.meter.count(method, route, status, time.perf_counter() - started)


class Deadline:
    """Ends a request that takes too long as 503.

    What it was about to write is not committed any more (`commit_deadline`), so it is never half-done. A response
    that has begun (a stream) is let go on.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request within its time."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        settings = self.settings
        limit, written = settings.request_timeout_seconds, "nothing was written"
        if is_upload(scope):
            limit, written = settings.upload_timeout_seconds, "what was stored by then is kept; send it again"
        late = Timeout(f"not done within {limit:g} s; {written}", retry_after=settings.retry_after_seconds)
        await _Timed(scope, send, limit, late).run(self.app, receive)


class _Timed:
    """One request with its timer, which answers ``late``."""

    def __init__(self, scope: Scope, send: Send, limit: float, late: Timeout) -> None:
        self.scope = scope
        self.send = send
        self.limit = limit
        self.late = late
        self.started = False
        self.expired = False
        self.task: asyncio.Task[Any] | None = None
        self.reply: asyncio.Task[None] | None = None

    async def run(self, app: ASGIApp, receive: Receive) -> None:
        self.task = asyncio.current_task()
        token = commit_deadline.set(time.monotonic() + self.limit)
        timer = asyncio.get_running_loop().call_later(self.limit + GRACE_SECONDS, self._expire)
        try:
            await app(self.scope, receive, self._send)
        except asyncio.CancelledError:
            if not self.expired or self.task is None or self.task.uncancel() > 0:
                raise
        finally:
            timer.cancel()
            commit_deadline.reset(token)
            if self.reply is not None:
                await self.reply

    async def _send(self, message: Message) -> None:
        if not self.expired:
            self.started = True
            await self.send(message)

    def _expire(self) -> None:
        if self.started or self.task is None:
            return
        self.expired = True
        self.reply = asyncio.get_running_loop().create_task(send_problem(self.send, self.late, self.scope["path"]))
        self.task.cancel()


class BodyLimit:
    """Refuses bodies beyond the limit: by their declared length at once, else while they are read."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request whose body is within the limit."""
        if scope["type"] != "http" or scope["method"] in BODILESS:
            await self.app(scope, receive, send)
            return
        settings = self.settings
        limit = settings.upload_limit_bytes if is_upload(scope) else settings.json_limit_bytes
        declared = dict(scope["headers"]).get(b"content-length", b"")
        if declared.isdigit() and int(declared) > limit:
            await send_problem(send, too_large(limit, int(declared)), scope["path"])
            return
        await _Capped(scope, receive, send, limit).run(self.app)


def too_large(limit: int, size: int) -> TooLarge:
    """The error of a body beyond the limit."""
    return TooLarge(f"the body has {size:,} bytes or more; at most {limit:,} are accepted")


class _Capped:
    """One request whose body is counted while it is read."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limit: int) -> None:
        self.scope = scope
        self.receive = receive
        self.send = send
        self.limit = limit
        self.size = 0
        self.started = False
        self.refused = False

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self.scope, self._receive, self._send)
        except TooLarge:
            if self.started:
                raise
            await self._refuse()

    async def _receive(self) -> Message:
        message = await self.receive()
        if message["type"] == "http.request":
            self.size += len(message.get("body", b""))
            if self.size > self.limit:
                raise too_large(self.limit, self.size)
        return message

    async def _send(self, message: Message) -> None:
        if self.size > self.limit and not self.started:  # whatever the application made of it
            await self._refuse()
            return
        self.started = True
        if not self.refused:
            await self.send(message)

    async def _refuse(self) -> None:
        if not self.refused:
            self.refused = True
            await send_problem(self.send, too_large(self.limit, self.size), self.scope["path"])
