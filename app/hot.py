"""Routes for what is asked thousands of times a second: plain ASGI beside the framework, with the same errors.

Validation and dependency injection cost more than a decision does. A hot route reads the request by itself, raises
the same errors as any endpoint (the application answers them), and has its entry in the schema written beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from typing import Generic, TypeVar
from urllib.parse import unquote_plus

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import BadRequest, FieldError, UnsupportedMedia

LARGEST_BATCH = 64

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
Endpoint = Callable[[Scope, Receive, Send], Awaitable[None]]


class HotRoute(Route):
    """A route whose endpoint is an ASGI application."""

    def __init__(self, path: str, endpoint: Endpoint, method: str) -> None:
        super().__init__(path, endpoint, methods=[method], name=getattr(endpoint, "__name__", None))
        self.app: ASGIApp = endpoint

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, and say for the metrics which route it was."""
        scope["route"] = self
        await super().handle(scope, receive, send)


async def send_json(send: Send, status: int, body: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
    """Answer with JSON that is encoded already."""
    pairs = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The request's body, which must be declared as JSON.

    Raises:
        UnsupportedMedia: another content type.
        BadRequest: the client went away in the middle.
    """
    for name, value in scope["headers"]:
        if name == b"content-type":
            _check_media(value)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise BadRequest("the body ended early")
    return body


def _check_media(value: bytes) -> None:
    if value == b"application/json":
        return
    media = value.partition(b";")[0].strip().lower()
    if media != b"application/json" and not media.endswith(b"+json"):
        given = value.decode("latin-1")
        field = FieldError("/header/Content-Type", "must be application/json", given)
        raise UnsupportedMedia(f"Content-Type must be application/json, not {given!r}", errors=[field])


def query(scope: Scope) -> dict[str, list[str]]:
    """The query's values by name, in order."""
    values: dict[str, list[str]] = {}
    for part in scope["query_string"].decode("latin-1").split("&"):
        if part:
            name, _, value = part.partition("=")
            if "%" in part or "+" in part:
                name, value = unquote_plus(name), unquote_plus(value)
            values.setdefault(name, []).append(value)
    return values


class MicroBatch(Generic[Key, Item]):
    """Evaluates together what arrives together: items of one key, at most ``largest`` at a time.

    ``evaluate`` gets a key and its items and gives one result per item. What arrives within one turn of the event
    loop is one batch, so nothing waits for company. An evaluation that fails is repeated item by item, so that only
    the item that is at fault fails.
    """

    def __init__(self, evaluate: Callable[[Key, list[Item]], list[bytes]], largest: int = LARGEST_BATCH) -> None:
        self._evaluate = evaluate
        self._largest = largest
        self._pending: list[tuple[Key, Item, asyncio.Future[bytes]]] = []

    def submit(self, key: Key, item: Item) -> asyncio.Future[bytes]:
        """The item's result, soon."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bytes] = loop.create_future()
        self._pending.append((key, item, future))
        if len(self._pending) == 1:
            loop.call_soon(self._flush)
        elif len(self._pending) == self._largest:
            self._flush()
        return future

    def _flush(self) -> None:
        pending, self._pending = self._pending, []
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


def reject_unknown(given: Collection[str], known: Collection[str]) -> list[FieldError]:
    """Query parameters that an endpoint doesn't know."""
    accepted = f"unknown parameter; known: {', '.join(known)}"
    return [FieldError(f"/query/{name}", accepted) for name in given if name not in known]
