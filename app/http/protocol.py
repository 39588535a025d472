"""Uvicorn's protocol, with patience that ends and answers that leave in one piece."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Any, ClassVar

from starlette.types import Scope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.http.exchange import WHOLE
from app.http.limits import Headers
from app.http.problems import MEDIA_TYPE

MOST_HEAD_BYTES = 1 << 16
_TOLD = {
    "type": "/problems/head-too-large",
    "title": "Head too large",
    "status": int(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    "detail": f"URL and headers of a request have at most {MOST_HEAD_BYTES:,} bytes together, and so have its trailers",
}
_BODY = json.dumps(_TOLD).encode() + b"\n"
TOO_LONG = b"content-type: %b\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (
    MEDIA_TYPE.encode(),
    len(_BODY),
    _BODY,
)
"""What follows the first line of the answer to such a request."""


class Corked:
    """A transport that writes once per turn of the event loop: head and body of an answer in one system call.

    All else is the inner transport's.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self.is_closing = transport.is_closing  # asked after every answer
        self._pieces: list[bytes] = []
        self._lost = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Write soon, with what else is written in this turn."""
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)

    def lose(self) -> None:
        """Write nothing any more: the connection is lost, which uvicorn tells the last of several requests alone."""
        self._lost = True

    def close(self) -> None:
        """Close, once everything is written."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            if not self._lost:
                self._transport.write(b"".join(pieces))


class Protocol(HttpToolsProtocol):
    """Closes connections that send nothing, or half a request's head, which uvicorn by itself would keep for ever.

    A head longer than ``MOST_HEAD_BYTES`` is answered with 431, and so is as much of anything else that is neither the
    end of a head nor part of a body: trailers, or what stands beside the length of a chunk. Trailers are left out, for
    they come when it is settled who asks for what.

    The timer runs from a connection's beginning, and after a request from the first byte of the next one, until the
    head of a request is complete. Bodies have their time with their request. Connections at rest, for which uvicorn
    starts a timer with each answer and stops it with each request, are looked at now and then: they end once they were
    at rest for ``timeout_keep_alive`` seconds, and before they are for twice as long.
    """

    header_seconds: ClassVar[float]
    _head: asyncio.TimerHandle | None = None
    _look: asyncio.TimerHandle | None = None
    _answered = _seen = 0
    _unfinished = _fed = _piece = 0
    _too_long = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Have the first request come in time."""
        self._corked = Corked(transport, self.loop)
        super().connection_made(self._corked)  # type: ignore[arg-type]
        self._head = self.loop.call_later(self.header_seconds, self._close)
        self._look_later()

    def data_received(self, data: bytes) -> None:
        """Stop waiting where a request is complete; else go on, or begin."""
        self._piece = len(data)
        self._fed, self._unfinished = self._fed + self._piece, self._unfinished + self._piece
        super().data_received(data)
        if self._unfinished > MOST_HEAD_BYTES and not self.transport.is_closing():
            self._too_long = True
            self.send_400_response("")
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._head is None:
            self._head = self.loop.call_later(self.header_seconds, self._close)

    def on_message_begin(self) -> None:
        """Offer to answer in one piece."""
        self._unfinished, self._fed = 0, self._piece
        super().on_message_begin()
        self.scope["extensions"] = {WHOLE: self}  # type: ignore[dict-item]

    def on_headers_complete(self) -> None:
        """Begin to answer, unless the head is too long; whatever else is called a header belongs to no request."""
        self._unfinished = 0
        if self._fed > MOST_HEAD_BYTES:
            sizes = (len(name) + len(value) for name, value in self.headers)
            self._too_long = len(self.url) + sum(sizes) > MOST_HEAD_BYTES
            if self._too_long:
                raise ValueError("the head is too long")  # which ends the parser's work, and is answered below
        super().on_headers_complete()
        self.headers = []

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request has ended."""
        self._unfinished = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or too long to be one, and close."""
        if not self._too_long:
            super().send_400_response(msg)
            return
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering or self.cycle.scope is self.scope:  # else it would be taken for the answer to the one before
            self.transport.write(b"%b%b" % (STATUS_LINE[HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE], TOO_LONG))
        self.transport.close()

    def answered(self, scope: Scope, status: int, headers: Headers, body: bytes) -> bool:
        """As uvicorn answers the request of ``scope``, but for its search of each header for what can't stand there.

        False, and nothing is done, where another one was read meanwhile, or the client has to be waited for.
        """
        cycle = self.cycle
        if cycle.scope is not scope or cycle.disconnected or cycle.response_started or self.flow.write_paused:
            return False
        cycle.response_started = cycle.response_complete = True
        pairs = [*cycle.default_headers, *headers]
        if not cycle.keep_alive:
            pairs.append((b"connection", b"close"))
        self.transport.write(b"%b%b\r\n%b" % (STATUS_LINE[status], b"".join([b"%b: %b\r\n" % p for p in pairs]), body))
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
        return True

    def on_response_complete(self) -> None:
        """As uvicorn's, without its timer."""
        self.server_state.total_requests += 1
        self._answered += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer, for a request or to write."""
        self._stop()
        self._corked.lose()
        if self._look is not None:
            self._look.cancel()
        super().connection_lost(exc)

    def _look_later(self) -> None:
        self._seen = self._answered
        self._look = self.loop.call_later(self.timeout_keep_alive, self._look_at)

    def _look_at(self) -> None:
        """Close a connection on which nothing has come since the last look, or look again."""
        at_rest = self.cycle is not None and self.cycle.response_complete and self._head is None
        if at_rest and self._answered == self._seen:
            self.transport.close()
        else:
            self._look_later()

    def _stop(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _close(self) -> None:
        self._head = None
        self.transport.close()


def protocol(header_seconds: float) -> type[Protocol]:
    """The protocol with this patience."""
    return type("BoundProtocol", (Protocol,), {"header_seconds": header_seconds})
