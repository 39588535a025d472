"""The body of an upload on its way from the event loop to the thread that reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import anyio.from_thread
from starlette.types import Receive

from app.database.engine import check_deadline
from app.errors import BadRequest

AHEAD = 4
"""Chunks that are received before they are asked for."""
SILENT_SECONDS = 60.0
SILENT = f"nothing of the body came for {SILENT_SECONDS:g} s; the execution that was being read isn't kept"
GONE = "the body ended early; the execution that was being read isn't kept"


class Body:
    """Received on the event loop by ``feed``, read in a thread by ``chunks``.

    The loop goes on listening while the thread works, and after the last chunk: so a thread whose client has gone
    learns of it from ``check``, however long it has still to work on what it was given.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._chunks: asyncio.Queue[bytes | Exception] = asyncio.Queue(AHEAD)
        self._gone = False

    async def feed(self) -> None:
        """Receive until the client goes, or sends nothing for too long, or this is cancelled."""
        whole = False
        try:
            while not self._gone:
                message = await (self._receive() if whole else asyncio.wait_for(self._receive(), SILENT_SECONDS))
                self._gone = message["type"] == "http.disconnect"
                if chunk := message.get("body", b""):
                    await self._chunks.put(chunk)
                if message["type"] == "http.request" and not message.get("more_body", False):
                    whole = True
                    await self._chunks.put(b"")
        except TimeoutError:
            await self._chunks.put(BadRequest(SILENT))
        except Exception as error:  # noqa: BLE001 - raised where the body is read
            await self._chunks.put(error)
        if self._gone:
            self.abandon()

    def abandon(self) -> None:
        """Have the thread stop at its next look; one that waits for a chunk is woken."""
        self._gone = True
        if self._chunks.empty():
            self._chunks.put_nowait(b"")

    def check(self) -> None:
        """Called by the thread now and then while it works.

        Raises:
            BadRequest: nobody waits for the answer any more.
            DeadlinePassed: it takes too long.
        """
        if self._gone:
            raise BadRequest(GONE)
        check_deadline()

    def chunks(self) -> Iterator[bytes]:
        """The body, for the thread.

        Raises:
            BadRequest: it ended early.
        """
        while True:
            chunk = anyio.from_thread.run(self._chunks.get)
            self.check()
            if isinstance(chunk, Exception):
                raise chunk
            if not chunk:
                return
            yield chunk
