"""Server-sent events that tell pages to reload changed parts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable

from fastapi import Request
from fastapi.responses import StreamingResponse

from app.http.caller import Caller
from app.http.streams import PiecewiseResponse, run_in_stream_thread
from app.settings import Settings

LEAST_SECONDS = 1.0
"""Shortest time between two events."""
KEEP_ALIVE_SECONDS = 15.0
CHANGED = "event: changed\ndata: .\n\n"
Look = Callable[[], tuple[Hashable, bool]]


def changes(request: Request, settings: Settings, caller: Caller, find: Look) -> StreamingResponse:
    """Server-sent events of a page, which may be out of date when it connects.

    ``changed`` is sent first, and whenever the first value of ``find()`` changes; ``ended`` once its second is True.
    """
    stream = _stream(request, settings, caller, find)
    return PiecewiseResponse(stream, "text/event-stream", events=True, stored=False)


async def _stream(request: Request, settings: Settings, caller: Caller, find: Look) -> AsyncIterator[str]:
    ends = spoken = time.monotonic()
    ends += settings.stream_seconds
    observation, over = await run_in_stream_thread(find)
    yield "retry: 2000\n\n"
    if not over:
        yield CHANGED
    while not over and time.monotonic() < ends and request.app.state.keys.holds(caller.key):
        await asyncio.sleep(max(settings.stream_poll_seconds, LEAST_SECONDS))
        if await request.is_disconnected():
            return
        result, over = await run_in_stream_thread(find)
        if result != observation:
            observation, spoken = result, time.monotonic()
            yield CHANGED
        elif time.monotonic() - spoken > KEEP_ALIVE_SECONDS:
            spoken = time.monotonic()
            yield ": still there\n\n"
    if over:
        yield "event: ended\ndata: .\n\n"
