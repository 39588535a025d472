"""Celery's pool of processes, none of which waits for work with a lock in its hands.

Where a broker has no event loop, as files have none, the processes take work from one pipe. Billiard's wait for it
holding the pipe's lock: after a kill -9 of the one that holds it, while it idles, no other would ever work again.
"""

from __future__ import annotations

from typing import Any

from billiard.pool import Pool
from billiard.queues import SimpleQueue
from celery.concurrency.prefork import TaskPool

LOOK_SECONDS = 1.0


class Inbox(SimpleQueue):
    """A pipe that is locked only while something is taken out of it."""

    def get_payload(self) -> bytes:
        """The next message; blocks."""
        while True:
            if self._reader.poll(LOOK_SECONDS):
                with self._rlock:
                    if self._reader.poll(0):  # nobody else was faster
                        payload: bytes = self._reader.recv_bytes()
                        return payload


class BlockingProcesses(Pool):
    """Billiard's pool with such an inbox."""

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue: Any = Inbox(ctx=self._ctx)
        self._quick_put = self._inqueue._writer.send  # noqa: SLF001 - as the class above does


class Processes(TaskPool):
    """Celery's prefork pool with it."""

    BlockingPool = BlockingProcesses
