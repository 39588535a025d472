"""Routes for what is asked thousands of times a second: plain ASGI beside the framework, with the same errors.

Layers of middleware, validation and dependency injection each cost more than a decision does. A hot route reads the
request by itself, raises the same errors as any endpoint, and has its entry in the schema written beside it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Hashable, Sequence
from http import HTTPStatus
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import unquote_plus

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import BadRequest, FieldError, Timeout, UnsupportedMedia
from app.http.characters import check_address, check_json
from app.http.middleware import too_large
from app.http.problems import respond
from app.settings import Settings

logger = logging.getLogger(__name__)
LARGEST_BATCH = 64
PATIENCE_SECONDS = 0.002

Made = TypeVar("Made")
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Task = asyncio.Task[Any] | None
Endpoint = Callable[["HotRequest"], Awaitable["Answer"]]


class HotRoute(Route):
    """What `HotPath` serves. The router knows it too, and answers its other methods."""

    def __init__(self, path: str, endpoint: Endpoint, method: str) -> None:
        super().__init__(path, self._elsewhere, methods=[method])
        self.endpoint, self.method = endpoint, method

    async def _elsewhere(self, request: Request) -> Response:
        raise RuntimeError(f"{request.method} {self.path} is served by HotPath")


class Answer(NamedTuple):
    """What a hot endpoint answers: JSON that is encoded already."""

    status: int
    body: bytes
    headers: Sequence[tuple[bytes, bytes]] = ()


class HotPath:
    """Serves the hot routes before any other layer; everything else goes on to the application.

    It does for them what those layers do for the others: counts, caps the body and the time, answers errors.

    Args:
        app: the application that the routes belong to.
        inner: what serves everything else.
        routes: what is served here, by exact method; other methods of the same paths go on.
        count: called with method, route, status and seconds of each request.
        settings: the cap on bodies.
    """

    def __init__(
        self,
        app: FastAPI,
        inner: ASGIApp,
        routes: Sequence[HotRoute],
        count: Callable[[str, str, int, float], None],
        settings: Settings,
    ) -> None:
        self.app, self.inner, self.count, self.limit = app, inner, count, settings.json_limit_bytes
        self.overdue = Overdue(settings.request_timeout_seconds)
        self.routes = [(route.method, route.path_regex.match, route) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            for served, match, route in self.routes:
                if served == method:
                    found = match(path)
                    if found is not None:
                        await self._serve(route, found.groupdict(), scope, receive, send)
                        return
        await self.inner(scope, receive, send)

    async def _serve(
        self, route: HotRoute, parameters: dict[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        started, task = time.perf_counter(), asyncio.current_task()
        self.overdue.begin(task, started)
        try:
            check_address(parameters, scope["query_string"])
            status, body, headers = await route.endpoint(HotRequest(self.app, scope, receive, parameters, self.limit))
        except (Exception, asyncio.CancelledError) as failure:
            error = self.overdue.error(task, failure)
            scope["app"] = self.app
            response = respond(Request(scope), error)
            status = response.status_code
            if status == HTTPStatus.INTERNAL_SERVER_ERROR:
                logger.exception("%s %s", scope["method"], scope["path"])
            await response(scope, receive, send)
        else:
            pairs = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
            await send({"type": "http.response.start", "status": status, "headers": pairs})
            await send({"type": "http.response.body", "body": body})
        finally:
            self.overdue.end(task)
        self.count(route.method, route.path, status, time.perf_counter() - started)


class Overdue:
    """Ends requests that take longer than ``limit`` seconds; they are looked through once a second at most."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._begun: dict[Task, float] = {}
        self._ended: set[Task] = set()
        self._looking = False

    def begin(self, task: Task, now: float) -> None:
        """A request has begun in ``task``."""
        self._begun[task] = now
        if not self._looking:
            self._looking = True
            asyncio.get_running_loop().call_later(min(1.0, self._limit / 2), self._look)

    def end(self, task: Task) -> None:
        """It is answered."""
        self._begun.pop(task, None)
        self._ended.discard(task)

    def error(self, task: Task, failure: BaseException) -> Exception:
        """What a failed request is answered with; a cancellation that isn't ours goes on."""
        if isinstance(failure, Exception):
            return failure
        if task is None or task not in self._ended or task.uncancel() > 0:
            raise failure
        return Timeout(f"not done within {self._limit:g} s; ask again: what is done already is not done twice")

    def _look(self) -> None:
        now, self._looking = time.perf_counter(), False
        for task, begun in self._begun.items():
            if now - begun > self._limit and task is not None and task not in self._ended:
                self._ended.add(task)
                task.cancel()
        if self._begun:
            self._looking = True
            asyncio.get_running_loop().call_later(min(1.0, self._limit / 2), self._look)


class HotRequest(NamedTuple):
    """A request as a hot endpoint gets it."""

    app: Any
    scope: Scope
    receive: Receive
    path: dict[str, str]
    limit: int

    async def json_body(self) -> bytes:
        """The body, which must be declared as JSON.

        Raises:
            UnsupportedMedia: another content type.
            TooLarge: more than the limit.
            BadRequest: the client went away in the middle.
            Invalid: it holds characters that a database can't keep.
        """
        for name, value in self.scope["headers"]:
            if name == b"content-type":
                _check_media(value)
            elif name == b"content-length" and int(value) > self.limit:
                raise too_large(self.limit, int(value))
        message = await self.receive()
        body: bytes = message.get("body", b"")
        while message.get("more_body") and len(body) <= self.limit:
            message = await self.receive()
            body += message.get("body", b"")
        if message["type"] == "http.disconnect":
            raise BadRequest("the body ended early")
        if len(body) > self.limit:
            raise too_large(self.limit, len(body))
        check_json(body)
        return body


def _check_media(value: bytes) -> None:
    if value == b"application/json":
        return
    media = value.partition(b";")[0].strip().lower()
    if media != b"application/json" and not media.endswith(b"+json"):
        given = value.decode("latin-1")
        field = FieldError("/header/Content-Type", "must be application/json", given)
        raise UnsupportedMedia(f"Content-Type must be application/json, not {given!r}", errors=[field])


def of_loop(app: FastAPI, make: type[Made], *arguments: object) -> Made:
    """The application's one ``make`` for the running event loop, made when it is first asked for."""
    loop = asyncio.get_running_loop()
    made: dict[type, tuple[asyncio.AbstractEventLoop, Any]] = app.state.of_loop
    found = made.get(make)
    if found is None or found[0] is not loop:
        found = made[make] = (loop, make(*arguments))
    result: Made = found[1]
    return result


def query(request: HotRequest) -> dict[str, list[str]]:
    """The query's values by name, in order."""
    values: dict[str, list[str]] = {}
    for part in request.scope["query_string"].decode("latin-1").split("&"):
        if part:
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            values.setdefault(name, []).append(value)
    return values


class Gathering:
    """Waits until no more arrives: for a turn of the event loop in which nothing came.

    With one caller that is at once; under load it is as long as requests keep coming in, but no longer than
    ``PATIENCE_SECONDS`` or ``largest`` items. So batches grow with the load, and nothing waits for company that isn't
    on its way.
    """

    def __init__(self, count: Callable[[], int], flush: Callable[[], None], largest: int) -> None:
        self._count, self._flush, self._largest = count, flush, largest
        self._seen, self._deadline = -1, 0.0

    def arrived(self) -> None:
        """Something has come."""
        if self._seen < 0:
            self._seen = 0
            self._deadline = time.perf_counter() + PATIENCE_SECONDS
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        count = self._count()
        if count > self._seen and count < self._largest and time.perf_counter() < self._deadline:
            self._seen = count
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._seen = -1
            self._flush()


class MicroBatch(Generic[Key, Item]):
    """Evaluates together what arrives together: items of one key, at most ``largest`` at a time.

    ``evaluate`` gets a key and its items and gives one result per item. An evaluation that fails is repeated item by
    item, so that only the item that is at fault fails.
    """

    def __init__(self, evaluate: Callable[[Key, list[Item]], list[bytes]], largest: int = LARGEST_BATCH) -> None:
        self._evaluate = evaluate
        self._largest = largest
        self._pending: list[tuple[Key, Item, asyncio.Future[bytes]]] = []
        self._gathering = Gathering(lambda: len(self._pending), self._flush, largest)

    def submit(self, key: Key, item: Item) -> asyncio.Future[bytes]:
        """The item's result, soon."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._pending.append((key, item, future))
        self._gathering.arrived()
        return future

    def _flush(self) -> None:
        pending, self._pending = self._pending[: self._largest], self._pending[self._largest :]
        if self._pending:
            self._gathering.arrived()
        groups: dict[Key, list[tuple[Item, asyncio.Future[bytes]]]] = {}
        for key, item, future in pending:
            if not future.done():
                groups.setdefault(key, []).append((item, future))
        for key, group in groups.items():
            self._resolve(key, group)

    def _resolve(self, key: Key, group: Sequence[tuple[Item, asyncio.Future[bytes]]]) -> None:
        try:
            results = self._evaluate(key, [item for item, _ in group])
        except Exception as error:  # noqa: BLE001 - handed to whoever awaits it
            if len(group) == 1:
                group[0][1].set_exception(error)
                return
            for single in group:
                self._resolve(key, [single])
            return
        for (_, future), result in zip(group, results, strict=True):
            future.set_result(result)
