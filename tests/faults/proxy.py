"""A TCP proxy on loopback that can cut its connections, hold them still, and lead elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers import free_port

CHUNK = 1 << 16


class Proxy:
    """Forwards from ``port`` to ``target``; runs on an event loop of its own, in a thread."""

    def __init__(self, target: int) -> None:
        self.port, self.target = free_port(), target
        self._loop = asyncio.new_event_loop()
        self._open: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._refusing = False

    async def _serve(self, started: threading.Event) -> None:
        self._flowing.set()
        server = await asyncio.start_server(self._forward, "127.0.0.1", self.port)
        started.set()
        with contextlib.suppress(asyncio.CancelledError):
            await server.serve_forever()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.close()
            return
        try:
            await self._flowing.wait()
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self._open |= {writer, back}
        try:
            await asyncio.gather(self._pump(reader, back), self._pump(there, writer))
        finally:
            self._open -= {writer, back}

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK):
                await self._flowing.wait()
                writer.write(chunk)
                await writer.drain()
        writer.close()

    def cut(self) -> None:
        """End every connection at once, as a router does that forgets them."""
        self._call(self._cut)

    def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    def pause(self) -> None:
        """Nothing gets through any more; connections stay."""
        self._call(self._flowing.clear)

    def resume(self) -> None:
        """It goes on."""
        self._call(self._flowing.set)

    def lead_to(self, target: int) -> None:
        """From now on to another port; what is open is cut."""
        self.target = target
        self.cut()

    def _call(self, what: object) -> None:
        self._loop.call_soon_threadsafe(what)  # type: ignore[arg-type]

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """Forward until the end."""
        started = threading.Event()
        asyncio_thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        asyncio_thread.start()
        assert started.wait(10)
        try:
            yield self
        finally:
            self._call(self._stop)
            asyncio_thread.join(10)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._serve(started))
        self._loop.close()

    def _stop(self) -> None:
        self._cut()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
