"""What is told of each request to whoever operates the service: a line of the log, a span; ids that join them."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from starlette.types import Scope

from app.http.exchange import Exchange
from app.settings import Settings
from app.telemetry.requests import Answered, RequestLog
from app.telemetry.trace import Trace, began

if TYPE_CHECKING:  # it takes the extra `otel`
    from app.telemetry.spans import Spans

NOBODY = "", "nobody"
SERVER_ERROR = 500
STATUS = "http.response.status_code"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:/+=@-]{1,128}")


class Observer:
    """Follows requests; on one event loop.

    Args:
        log: writes a line for each, if wanted.
        spans: makes a span of each, if wanted.
    """

    def __init__(self, log: RequestLog | None, spans: Spans | None) -> None:
        self._log, self._spans = log, spans

    def begin(self, exchange: Exchange) -> None:
        """Give it its ids: the caller's where it sends some (`traceparent`, `X-Request-ID`), else new ones."""
        traceparent = request_id = b""
        for name, value in exchange.scope["headers"]:
            if name == b"traceparent":
                traceparent = value
            elif name == b"x-request-id":
                request_id = value
        trace = exchange.trace = began(traceparent.decode("latin-1"))
        own = request_id if _REQUEST_ID.fullmatch(request_id) else trace.span_id.encode()
        exchange.request_id = own

    def end(self, exchange: Exchange, trace: Trace, seconds: float) -> None:
        """Tell of it."""
        ended, status = time.time(), exchange.status or SERVER_ERROR
        caller = getattr(exchange, "caller", None)
        tenant, name = NOBODY if caller is None else (caller.tenant, caller.name)
        method, route = exchange.scope["method"], exchange.route
        if self._log is not None:
            request_id = exchange.request_id.decode()
            decision = exchange.decision
            self._log.add(Answered(ended, seconds, method, route, status, tenant, name, request_id, trace, decision))
        if self._spans is not None:
            told = {"http.request.method": method, "http.route": route, "steward.tenant": tenant}
            failed = status >= SERVER_ERROR
            self._spans.add(f"{method} {route}", trace, ended, seconds, {**told, STATUS: status}, failed=failed)

    async def close(self) -> None:
        """Tell what has not been told yet."""
        if self._log is not None:
            await self._log.close()
        if self._spans is not None:
            self._spans.close()


def observer(settings: Settings) -> Observer | None:
    """What the settings ask for; None where that is nothing."""
    log = RequestLog(json=settings.log_format == "json") if settings.log_requests else None
    spans = None
    if settings.traces:
        from app.telemetry.spans import Spans

        spans = Spans()
    return Observer(log, spans) if log or spans else None


def begun(scope: Scope) -> Trace:
    """The span of a request that nobody follows, for what it asks of others."""
    found = next((value for name, value in scope["headers"] if name == b"traceparent"), b"")
    return began(found.decode("latin-1"))
