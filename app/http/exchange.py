"""A request and its response without FastAPI, and the hot routes that use it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from app.errors import StewardError, Timeout
from app.http.caller import Caller
from app.http.limits import (
    JSON,
    MOST_VALUES,
    NO_GUESSING,
    Headers,
    Limits,
    add_security_headers,
    too_large,
    too_many_values,
    values,
)
from app.http.problems import MEDIA_TYPE, respond
from app.http.query import check_body, check_json
from app.telemetry.attributes import Value
from app.telemetry.logs import Trace

logger = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""Seconds from a request's time limit, after which it commits nothing, to its timeout response."""
LINED = (JSON, MEDIA_TYPE.encode())
"""Media types whose bodies end with a line feed, for terminals."""
BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)

UNKNOWN = "unknown"
REQUEST_ID = b"x-request-id"


NOT_DONE = "timed out after {:g} s; repeat the request (a POST with the same Idempotency-Key): nothing runs twice"
UNKNOWN_END = (
    "the database takes longer than {:g} s to commit, and the outcome is unknown; "
    "repeat the request: nothing runs twice"
)


class Exchange:
    """One request and its response.

    Attributes:
        app: the application, with its ``state``.
        scope: the request's ASGI scope.
        limits: limits of its body and its duration.
        caller: the authenticated caller; unset before authentication.
        started: time of arrival, in monotonic seconds.
        deadline: timeout that cancels the request at its time limit.
        path: path parameters, on a hot route.
        route: template of its path; `unknown` before routing.
        status: HTTP status of the response; 0 before it has begun.
        attributes: further attributes of its span.
        trace: its span; None before it is known. `traceparent` is the header with the parent span.
        request_id: the client's `X-Request-ID`, if requests are logged or traced.
        work: the framework's task for it, on an ordinary route.
        decision: the decision (JSON) in a hot route's response.
    """

    caller: Caller
    path: Mapping[str, str] = MappingProxyType({})
    attributes: Mapping[str, Value] = MappingProxyType({})
    route = UNKNOWN
    status = 0
    trace: Trace | None = None
    work: asyncio.Future[None] | None = None
    traceparent = request_id = decision = b""
    _size = _values = 0
    _refusal: StewardError | None = None
    _refused = _committing = False
    _end = b""

    def __init__(self, app: Any, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.app, self.scope, self.limits = app, scope, limits
        self.started, self.deadline = time.monotonic(), asyncio.timeout(limits.seconds + GRACE_SECONDS)
        self._receive, self._send = receive, send

    def commit(self) -> None:
        """Leave the time limit to a commit that begins now; a timeout response then says that the work may have been
        committed."""
        self._committing = True
        if time.monotonic() - self.started > GRACE_SECONDS:  # else that much is left, and a timer is spared
            self.deadline.reschedule((self.deadline.when() or 0.0) + self.limits.seconds)

    async def receive(self) -> Message:
        """The next ASGI message of the body for the framework; its bytes and, in JSON, its values are counted.

        Raises:
            TooLarge: the body exceeds a limit.
        """
        message = await self._receive()
        self._count(message)
        if self.limits.json:
            self._values += values(message.get("body", b""))
            if self._values > MOST_VALUES:
                self._refusal = too_many_values()
                raise self._refusal
        return message

    def _count(self, message: Message) -> None:
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            if self._size > self.limits.body_bytes:
                self._refusal = too_large(self.limits.body_bytes, self._size)
                raise self._refusal

    async def body(self) -> bytes:
        """The whole body of the request.

        Raises:
            TooLarge: it exceeds the limit.
            ClientDisconnect: the client disconnected.
            Invalid: it contains characters that the database can't store.
        """
        pieces, more = list[bytes](), True
        while more:
            message = await self._receive()
            self._count(message)
            pieces.append(message.get("body", b""))
            more = message.get("more_body", False)
        body = b"".join(pieces)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        await check_body(body, check_json)
        return body

    async def answer(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Send a response with this HTTP status, encoded JSON as its body, and additional headers."""
        self.status, self.decision = status, body
        pairs = [(b"content-type", JSON), (b"content-length", b"%d" % (len(body) + 1)), NO_GUESSING, *headers]
        if self.request_id:
            pairs.append((REQUEST_ID, self.request_id))
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})
        await self._send(
            {"type": "http.response.body", "body": b"" if self.scope["method"] == "HEAD" else body + b"\n"}
        )

    async def send(self, message: Message) -> None:
        """Send an ASGI message of the framework's response, unless an error was already sent.

        A response that begins within the time limit, such as a stream, may take any time.
        """
        if self._refused or self.deadline.expired():
            return
        if not self.status:
            self.deadline.reschedule(None)
        if self._refusal is not None and not self.status:  # whatever the application made of it
            await self.refuse(self._refusal)
        else:
            await self._write(message)

    async def refuse(self, error: Exception) -> None:
        """Send an error's problem document instead of a response; raises ``error`` if a response has begun."""
        if self.status:
            raise error
        self._refused = True
        if self.deadline.expired():
            error = Timeout((UNKNOWN_END if self._committing else NOT_DONE).format(self.limits.seconds))
        scope = {**self.scope, "app": self.app}
        response = respond(Request(scope), error)
        if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("%s %s", scope["method"], scope["path"], exc_info=error)
        await response(scope, self._receive, self._write)

    async def _write(self, message: Message) -> None:
        """Send a message with a line feed after JSON; HEAD gets headers only."""
        head = self.scope["method"] == "HEAD"
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers, self._end = message.get("headers", ()), b""
            if self.status not in BODILESS:
                headers, self._end = _with_line_feed(headers)
            headers = add_security_headers(headers)
            if self.request_id:
                headers = [*headers, (REQUEST_ID, self.request_id)]
            await self._send({**message, "headers": headers})
            if head:
                await self._send({"type": "http.response.body", "body": b""})
        elif not head:
            end = b"" if message.get("more_body") else self._end
            await self._send({**message, "body": message.get("body", b"") + end} if end else message)


def _with_line_feed(headers: Headers) -> tuple[Headers, bytes]:
    """The headers of a response, and the text that ends its body: a line feed after JSON, with the length adjusted."""
    media = next((value for name, value in headers if name == b"content-type"), b"")
    if media.partition(b";")[0] not in LINED:
        return headers, b""
    length = b"content-length"
    return [(name, b"%d" % (int(value) + 1) if name == length else value) for name, value in headers], b"\n"


# Routes for thousands of requests per second: an exchange in, encoded JSON out, without the framework.
#
# Layers of validation and dependency injection each cost more than a decision does. A hot endpoint reads its `Exchange`
# by itself, raises the same errors as any other, and has its entry in the schema written beside it. All else (limits,
# time, errors, metering) is `Gateway`'s, for these routes as for the others.


class Answer(NamedTuple):
    """Response of a hot route, which the gateway serves itself: HTTP status, encoded JSON, additional headers."""

    status: int
    body: bytes
    headers: Headers = ()


Endpoint = Callable[[Exchange], Awaitable[Answer]]


class HotRoute(Route):
    """A route that the gateway serves itself. The framework's router knows it too, and answers other methods."""

    def __init__(self, path: str, endpoint: Endpoint, method: str) -> None:
        super().__init__(path, self._elsewhere, methods=[method])
        self.endpoint, self.method = endpoint, method

    async def _elsewhere(self, request: Request) -> Response:
        raise RuntimeError(f"{request.method} {self.path} is served by the gateway")
