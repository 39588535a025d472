"""Hot routes: a request and its answer without FastAPI."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from app.errors import StewardError, Timeout
from app.http.caller import Caller
from app.http.limits import JSON, MOST_VALUES, NO_GUESSING, Headers, Limits, guarded, too_large, too_many_values, values
from app.http.problems import MEDIA_TYPE, respond
from app.http.query import check_body, check_json
from app.telemetry.logs import Trace

logger = logging.getLogger(__name__)

GRACE_SECONDS = 0.5
"""Between the end of a request's time, from when on it writes nothing any more, and its being told so."""
LINED = (JSON, MEDIA_TYPE.encode())
"""Media types that end with a line feed, for those who read them on a terminal."""
BODILESS = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)

WHOLE = "steward.response.whole"
"""Under which a scope's extensions hold the `Server`, where one serves it."""
UNKNOWN = "unknown"
REQUEST_ID = b"x-request-id"


Made = TypeVar("Made")


class LoopLocal:
    """One object of each sort for the running event loop, made when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[Callable[..., Any], tuple[asyncio.AbstractEventLoop, Any]] = {}

    def get(self, make: Callable[..., Made], *arguments: object) -> Made:
        """The loop's ``make``, made of the arguments."""
        loop, found = asyncio.get_running_loop(), self._made.get(make)
        if found is None or found[0] is not loop:
            found = self._made[make] = (loop, make(*arguments))
        result: Made = found[1]
        return result


class Server(Protocol):
    """Takes head and body of an answer at once, which ASGI has in two messages."""

    def answered(self, scope: Scope, status: int, headers: Headers, body: bytes) -> bool:
        """Answer the request of ``scope``; False: not now, and nothing is done."""
        ...


NOT_DONE = "not done within {:g} s; ask again, a POST under the same Idempotency-Key, and nothing is done twice"
UNKNOWN_END = (
    "the database takes longer than {:g} s to commit, so that it isn't known whether this was done; "
    "ask again, and nothing is done twice"
)


class Exchange:
    """One request with its answer.

    Attributes:
        app: the application, with its ``state``.
        local: what lives on the event loop that serves it.
        scope: the request's ASGI scope.
        caller: who calls, once it is known.
        started: when it came, in monotonic seconds.
        path: its path parameters, on a hot route.
        route: the template of its path, once it is known.
        status: of its answer; 0 before it has begun.
        reply: what tells that its time is over, while it does.
        trace: the span that it is, once that is known; `traceparent` is the header that it begins from.
        request_id: what its caller calls it, where requests are told of.
        decision: the JSON that a hot route has answered with.
    """

    caller: Caller
    path: Mapping[str, str] = MappingProxyType({})
    route = UNKNOWN
    status = 0
    reply: asyncio.Task[None] | None = None
    trace: Trace | None = None
    traceparent = request_id = decision = b""
    _size = _values = 0
    _refusal: StewardError | None = None
    _silent = _committing = False
    _end = b""

    def __init__(self, app: Any, local: LoopLocal, scope: Scope, receive: Receive, send: Send, limits: Limits) -> None:
        self.app, self.local, self.scope, self.limits = app, local, scope, limits
        self.started = time.monotonic()
        self._receive, self._send, self._task = receive, send, asyncio.current_task()

    def commit(self) -> None:
        """What it asks for is being committed: it gets as long again, so that no answer says that it wasn't done."""
        self._committing = True

    def is_overdue(self, now: float) -> bool:
        """Whether its time is over."""
        return now > self.started + self.limits.seconds * (2 if self._committing else 1) + GRACE_SECONDS

    async def receive(self) -> Message:
        """The next piece of the body for the framework; its bytes are counted and, of JSON, its values.

        Raises:
            TooLarge: it is one too many.
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
        """The whole body.

        Raises:
            TooLarge: more than the limit.
            ClientDisconnect: the client went away in the middle.
            Invalid: it holds characters that a database can't keep.
        """
        message = await self._receive()
        self._count(message)
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            pieces = [body]
            while message.get("more_body"):
                message = await self._receive()
                self._count(message)
                pieces.append(message.get("body", b""))
            body = b"".join(pieces)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        await check_body(body, check_json)
        return body

    async def answer(self, status: int, body: bytes, headers: Headers = ()) -> None:
        """Answer with JSON that is encoded already."""
        if self._silent:
            return
        self.status, self.decision = status, body
        pairs = [(b"content-type", JSON), (b"content-length", b"%d" % (len(body) + 1)), NO_GUESSING, *headers]
        if self.request_id:
            pairs.append((REQUEST_ID, self.request_id))
        shown = b"" if self.scope["method"] == "HEAD" else body + b"\n"
        server: Server | None = self.scope.get("extensions", {}).get(WHOLE)
        if server is None or not server.answered(self.scope, status, pairs, shown):
            await self._send({"type": "http.response.start", "status": status, "headers": pairs})
            await self._send({"type": "http.response.body", "body": shown})

    async def send(self, message: Message) -> None:
        """Send a piece of the application's answer, unless the request was answered otherwise."""
        if self._refusal is not None and not self.status:  # whatever the application made of it
            await self.refuse(self._refusal)
        elif not self._silent:
            await self._write(message)

    async def refuse(self, error: Exception) -> None:
        """Answer with an error's document instead of anything that the application may still send."""
        self._silent = True
        scope = {**self.scope, "app": self.app}
        response = respond(Request(scope), error)
        if response.status_code == HTTPStatus.INTERNAL_SERVER_ERROR:
            logger.error("%s %s", scope["method"], scope["path"], exc_info=error)
        await response(scope, self._receive, self._write)

    async def fail(self, failure: BaseException) -> None:
        """Answer what an endpoint or the application raised; what isn't about this request goes on."""
        if self.reply is not None:
            if isinstance(failure, asyncio.CancelledError) and self._task is not None and self._task.uncancel() > 0:
                raise failure
        elif self.status or not isinstance(failure, Exception):
            raise failure
        else:
            await self.refuse(failure)

    def expire(self) -> None:
        """Its time is over: answer so, and cancel it; an answer that has begun (a stream) is let go on."""
        if self.status or self._silent or self._task is None:
            return
        error = Timeout((UNKNOWN_END if self._committing else NOT_DONE).format(self.limits.seconds))
        self._silent = True
        self.reply = asyncio.get_running_loop().create_task(self.refuse(error))
        self._task.cancel()

    async def _write(self, message: Message) -> None:
        """Send on: JSON with a line feed at its end, and to HEAD the headers alone."""
        head = self.scope["method"] == "HEAD"
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers, self._end = message.get("headers", ()), b""
            if self.status not in BODILESS:
                headers, self._end = _lined(headers)
            headers = guarded(headers)
            if self.request_id:
                headers = [*headers, (REQUEST_ID, self.request_id)]
            await self._send({**message, "headers": headers})
            if head:
                await self._send({"type": "http.response.body", "body": b""})
        elif not head:
            end = b"" if message.get("more_body") else self._end
            await self._send({**message, "body": message.get("body", b"") + end} if end else message)


def _lined(headers: Headers) -> tuple[Headers, bytes]:
    """The headers of an answer, and what its body is to end with: JSON with a line feed more."""
    media = next((value for name, value in headers if name == b"content-type"), b"")
    if media.partition(b";")[0] not in LINED:
        return headers, b""
    length = b"content-length"
    return [(name, b"%d" % (int(value) + 1) if name == length else value) for name, value in headers], b"\n"


# Routes for what is asked thousands of times a second: an exchange in, encoded JSON out, without the framework.
#
# Layers of validation and dependency injection each cost more than a decision does. A hot endpoint reads its `Exchange`
# by itself, raises the same errors as any other, and has its entry in the schema written beside it. All else (limits,
# time, errors, metering) is `Gateway`'s, for these routes as for the others.


class Answer(NamedTuple):
    """What a hot endpoint answers: JSON that is encoded already."""

    status: int
    body: bytes
    headers: Headers = ()


Endpoint = Callable[[Exchange], Awaitable[Answer]]


class HotRoute(Route):
    """What `Gateway` serves by itself. The router knows it too, and answers its other methods."""

    def __init__(self, path: str, endpoint: Endpoint, method: str) -> None:
        super().__init__(path, self._elsewhere, methods=[method])
        self.endpoint, self.method = endpoint, method

    async def _elsewhere(self, request: Request) -> Response:
        raise RuntimeError(f"{request.method} {self.path} is served by the gateway")
