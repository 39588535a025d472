"""Uvicorn's HTTP protocol with limits on bytes and seconds of a request's head."""

from __future__ import annotations

import asyncio
import json
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

MOST_HEAD_BYTES = 1 << 16
_BODY = json.dumps(
    {
        "type": "/problems/head-too-large",
        "title": "Head too large",
        "status": 431,
        "detail": f"URL and headers together, or trailers, must have at most {MOST_HEAD_BYTES:,} bytes",
    }
).encode()
REFUSAL = STATUS_LINE[431] + (
    b"content-type: application/problem+json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b\n"
    % (len(_BODY) + 1, _BODY)
)


class BoundedHead(HttpToolsProtocol):
    """HTTP protocol that bounds the head of a request.

    It responds 431 to a head, trailers or chunk sizes beyond ``MOST_HEAD_BYTES``, and closes a connection whose head
    isn't complete after ``header_seconds``.
    """

    header_seconds: ClassVar[float]
    _size = 0  # bytes since the last end of a head or piece of a body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.header_seconds, transport.close)
        self._cycles: list[RequestResponseCycle] = []

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        super().data_received(data)
        if self._size > MOST_HEAD_BYTES and not self.transport.is_closing():
            self.send_400_response("")
        if self.cycle is not None and not self.cycle.response_complete:
            self._timer.cancel()
        elif self._timer.cancelled():
            self._timer = self.loop.call_later(self.header_seconds, self.transport.close)

    def on_headers_complete(self) -> None:
        if self._size > MOST_HEAD_BYTES < len(self.url) + sum(len(name) + len(value) for name, value in self.headers):
            raise ValueError("the head is too long")  # ends the parser's work: uvicorn calls `send_400_response`
        self._size = 0
        super().on_headers_complete()
        self.headers = []  # trailers follow, after routing and authentication
        self._cycles = [cycle for cycle in self._cycles if not cycle.response_complete] + [self.cycle]

    def on_body(self, body: bytes) -> None:
        self._size = 0
        super().on_body(body)

    def send_400_response(self, msg: str) -> None:
        if self._size <= MOST_HEAD_BYTES:
            super().send_400_response(msg)
            return
        if all(one.response_complete or (one.scope is self.scope and not one.response_started) for one in self._cycles):
            self.transport.write(REFUSAL)  # else it would be taken for an earlier request's answer
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        for cycle in self._cycles:  # uvicorn notifies only the last of several requests
            cycle.disconnected = True
            cycle.message_event.set()
        super().connection_lost(exc)


def protocol(header_seconds: float) -> type[BoundedHead]:
    """The protocol class with a time limit in seconds for a request's head."""
    return type("BoundedHeadIn", (BoundedHead,), {"header_seconds": header_seconds})
