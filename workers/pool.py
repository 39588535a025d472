"""Celery's process pool, with a work pipe whose lock no idle process holds.

With a broker without event loop, such as files, the processes take work from one pipe. Billiard's hold the pipe's lock
while they wait: after a kill -9 of an idle process that holds it, no other could ever take work again.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Any

from billiard.pool import Pool
from billiard.queues import SimpleQueue
from celery.concurrency.prefork import TaskPool

LOOK_SECONDS = 1.0


class Inbox(SimpleQueue):
    """A pipe of messages whose lock is held only while a message is read."""

    def get_payload(self) -> bytes:
        """Wait for the next message and return it as bytes; raise EOFError if the pipe was closed."""
        while True:
            if self._reader.poll(LOOK_SECONDS):
                with self._rlock:
                    if self._reader.poll(0):  # no other process took it meanwhile
                        payload: bytes = self._reader.recv_bytes()
                        return payload


class BlockingProcesses(Pool):
    """Billiard's process pool, whose processes take work from an ``Inbox``."""

    def _setup_queues(self) -> None:
        super()._setup_queues()
        self._inqueue: Any = Inbox(ctx=self._ctx)
        self._quick_put = self._inqueue._writer.send  # noqa: SLF001 - as the class above does


class Processes(TaskPool):
    """Celery's prefork pool on ``BlockingProcesses``, which stops idle processes at once."""

    BlockingPool = BlockingProcesses
    _pool: Any

    def on_stop(self) -> None:
        """Stop the pool: wait for running tasks; without any, kill the processes at once (billiard takes 3 seconds)."""
        pool, idle = self._pool, not (self._pool and self._pool._cache)  # noqa: SLF001 - tasks that have not ended
        if pool is None or not idle:
            super().on_stop()
            return
        self._pool = None
        pool._terminate.cancel()  # noqa: SLF001 - the finaliser that this process would run at its end
        pool._worker_handler.terminate()  # noqa: SLF001 - the thread that replaces ended processes
        for process in pool._pool:  # noqa: SLF001
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
