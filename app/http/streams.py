"""Answers that are sent piece by piece: so many of a tenant are open at once, for each may stay open for long."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from app.errors import TooManyRequests
from app.http.caller import current_caller

T = TypeVar("T")
MOST_EVENTS, MOST_ANSWERS = 64, 16
"""Event streams, and answers of rows, that a tenant may have open in a process; both may hold a row in memory."""
LOOKS_AT_ONCE = 8
"""Of all event streams of a process, in threads of their own: no other request waits for them."""
RETRY_SECONDS = 5

_open: Counter[tuple[str, str]] = Counter()
_threads: dict[str, anyio.CapacityLimiter] = {}


async def look(call: Callable[[], T]) -> T:
    """Do what an event stream does now and then, in one of the threads of event streams."""
    limiter = _threads.setdefault("looks", anyio.CapacityLimiter(LOOKS_AT_ONCE))
    return await anyio.to_thread.run_sync(call, limiter=limiter)


class Streamed(StreamingResponse):
    """A response whose pieces are sent as they come.

    Args:
        content: the pieces.
        events: whether these are events, which come while something goes on; else the rows of one answer.
        media_type: of all together.

    Raises:
        TooManyRequests: when it is sent, the tenant has as many open as it may.
    """

    def __init__(
        self, content: AsyncIterable[str] | Iterable[str], media_type: str, *, events: bool = False, stored: bool = True
    ) -> None:
        super().__init__(content, media_type=media_type, headers=None if stored else {"Cache-Control": "no-store"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response, counted among those that the tenant has open until it is sent."""
        with _place(events=self._events):
            await super().__call__(scope, receive, send)


@contextmanager
def _place(*, events: bool) -> Iterator[None]:
    caller = current_caller.get()
    tenant = "" if caller is None else caller.tenant
    what, most = ("event streams", MOST_EVENTS) if events else ("answers of many rows", MOST_ANSWERS)
    if _open[what, tenant] >= most:
        raise TooManyRequests(f"{most} {what} of tenant {tenant} are open, and no more may", retry_after=RETRY_SECONDS)
    _open[what, tenant] += 1
    try:
        yield
    finally:
        _open[what, tenant] -= 1
        if not _open[what, tenant]:
            del _open[what, tenant]
