"""Streamed responses, with a limit on those that a tenant has open."""

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
"""Event streams and streamed lists that a tenant may have open per process; each may hold a row in memory."""
LOOKS_AT_ONCE = 8
"""Number of threads for all event streams of a process, apart from those of other requests."""
RETRY_SECONDS = 5

_open: Counter[tuple[str, str]] = Counter()
_threads: dict[str, anyio.CapacityLimiter] = {}


async def run_in_stream_thread(call: Callable[[], T]) -> T:
    """Run an event stream's query in one of the threads for event streams; returns or raises as ``call``."""
    limiter = _threads.setdefault("looks", anyio.CapacityLimiter(LOOKS_AT_ONCE))
    return await anyio.to_thread.run_sync(call, limiter=limiter)


class PiecewiseResponse(StreamingResponse):
    """A response that is sent piece by piece.

    Args:
        content: yields the pieces.
        media_type: media type of the response.
        events: whether it is an event stream, which has a limit of its own.
        stored: whether caches may store it.

    Raises:
        TooManyRequests: when it is sent, the tenant has too many responses open.
    """

    def __init__(
        self, content: AsyncIterable[str] | Iterable[str], media_type: str, *, events: bool = False, stored: bool = True
    ) -> None:
        super().__init__(content, media_type=media_type, headers=None if stored else {"Cache-Control": "no-store"})
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response; it counts as open until its end."""
        with _place(events=self._events):
            await super().__call__(scope, receive, send)


@contextmanager
def _place(*, events: bool) -> Iterator[None]:
    caller = current_caller.get()
    tenant = "" if caller is None else caller.tenant
    what, most = ("event streams", MOST_EVENTS) if events else ("streamed responses", MOST_ANSWERS)
    if _open[what, tenant] >= most:
        message = f"tenant {tenant} has {most} {what} open, the maximum"
        raise TooManyRequests(message, "streams", retry_after=RETRY_SECONDS)
    _open[what, tenant] += 1
    try:
        yield
    finally:
        _open[what, tenant] -= 1
        if not _open[what, tenant]:
            del _open[what, tenant]
