"""Connections that send nothing, or half a request's head, are closed after a while."""

from __future__ import annotations

import asyncio
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


class HeaderTimeout(HttpToolsProtocol):
    """Uvicorn's protocol, which by itself gives a client for ever to say what it wants.

    The timer runs from a connection's beginning, and after a request from the first byte of the next one, until the
    head of a request is complete. Bodies have their time with their request; idle connections uvicorn closes itself.
    """

    header_seconds: ClassVar[float]
    _head: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Have the first request come in time."""
        super().connection_made(transport)
        self._head = self.loop.call_later(self.header_seconds, self._close)

    def data_received(self, data: bytes) -> None:
        """Stop waiting where a request is complete; else go on, or begin."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop()
        elif self._head is None:
            self._head = self.loop.call_later(self.header_seconds, self._close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop()
        super().connection_lost(exc)

    def _stop(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _close(self) -> None:
        self._head = None
        self.transport.close()


def header_timeout(seconds: float) -> type[HeaderTimeout]:
    """The protocol with this patience."""
    return type("BoundHeaderTimeout", (HeaderTimeout,), {"header_seconds": seconds})
