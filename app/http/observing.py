"""What is told of each request to whoever operates the service: a line of the log, a span; ids that join them."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from app.http.exchange import Exchange
from app.settings import Settings
from app.telemetry.requests import RequestLog
from app.telemetry.trace import began

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
        """Take over what its caller names it (`X-Request-ID`), and the trace that it belongs to (`traceparent`)."""
        for name, value in exchange.scope["headers"]:
            if name == b"traceparent":
                exchange.traceparent = value
            elif name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
                exchange.request_id = value
        if self._spans is not None:
            exchange.trace = began(exchange.traceparent.decode("latin-1"))

    def end(self, exchange: Exchange, seconds: float) -> None:
        """Tell of it."""
        ended, status, (tenant, name) = time.time(), exchange.status or SERVER_ERROR, _caller(exchange)
        method, route, trace = exchange.scope["method"], exchange.route, exchange.trace
        if self._log is not None:
            which = exchange.request_id, trace or exchange.traceparent
            self._log.add((ended, seconds, method, route, status, tenant, name, *which, exchange.decision))
        if self._spans is not None and trace is not None:
            told = {"http.request.method": method, "http.route": route, "steward.tenant": tenant, STATUS: status}
            self._spans.add(f"{method} {route}", trace, ended, seconds, told, failed=status >= SERVER_ERROR)

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


def _caller(exchange: Exchange) -> tuple[str, str]:
    """Tenant and name of who called; of nobody where they were refused."""
    caller = getattr(exchange, "caller", None)
    return NOBODY if caller is None else (caller.tenant, caller.name)
